"""The packages of the course. Its folder data/ is one of them; all else is in pyproject.toml."""

from setuptools import find_packages, setup

setup(packages=[*find_packages(include=["course_lib*"]), "course_lib.data"], package_dir={"course_lib.data": "data"})
