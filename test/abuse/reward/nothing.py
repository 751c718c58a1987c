# Submits nothing.
pass
