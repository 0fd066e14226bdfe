"""``python -m caldist``, the same as ``caldist``."""

from caldist.cli import main

if __name__ == "__main__":
    main(prog_name="caldist")
