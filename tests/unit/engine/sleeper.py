"""A child of the planning tests: plans nothing for as long as it is let."""

import time

if __name__ == '__main__':
    time.sleep(60)
