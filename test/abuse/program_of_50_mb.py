# A program of 50 MB, against readers with a fixed buffer, or that keep many programs. It runs like any other.
print("held")
# @PADDING@
