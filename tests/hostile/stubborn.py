"""A planning child that hears no signal that can be ignored, and never ends by itself."""

import signal
import time

if __name__ == '__main__':
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print('deaf', flush=True)
    while True:
        time.sleep(60)
