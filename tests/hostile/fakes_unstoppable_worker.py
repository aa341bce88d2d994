"""A planning child that ignores every signal that can be ignored, and never ends."""

import signal
import time

if __name__ == '__main__':
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print('deaf', flush=True)
    while True:
        time.sleep(60)
