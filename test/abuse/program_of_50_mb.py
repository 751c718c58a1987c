# A program of 50 MB, for whoever reads it into a fixed buffer or keeps many of them. It runs like any other.
print("held")
# @PADDING@
