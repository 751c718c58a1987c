# Never ends. The supervisor's clock must end it: timedOut.
while True:
    pass
