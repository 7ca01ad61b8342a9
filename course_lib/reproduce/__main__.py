"""``python -m course_lib.reproduce``"""

from .command import main

if __name__ == "__main__":
    main()
