# A NUL byte in the middle of the source. C stops reading there, Python refuses it: failed, with the line.
x = "@NUL@"
print("BREACH")
