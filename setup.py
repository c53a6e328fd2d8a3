"""The build definition. AllenNLP is installed beside this package: docs/install.md says how."""

import platform
import sys
import zlib
from pathlib import Path
from typing import Dict, Iterable, List, Tuple

from setuptools import Extension, find_packages, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).parent
VERSION: Dict[str, str] = {}
NATIVE = Path("elmo_scratch/kernels/native")
# All processors of 2013 and later have these instructions; the library says whether the one at hand
# does. With others, which CFLAGS may ask for, what is compiled for several could not be inlined.
INSTRUCTIONS = (
    ["-march=x86-64", "-mtune=generic", "-mavx2", "-mfma"] if platform.machine() == "x86_64" else []
)
SOURCES, HEADERS = (sorted(NATIVE.rglob(pattern)) for pattern in ("*.cpp", "*.h"))
# This file is compiled once for each of these levels, which instructions.h describes.
SIMD_KERNELS, LEVELS = NATIVE / "simd_kernels.cpp", ("AVX2", "AVX512", "BFLOAT16")
# The configs that `allennlp elmo-train` fits to a text.
RECIPES = "elmo_scratch.own_text.configs"
# What lies in the package beside its code, at any depth: a new kind of file is named here.
DATA = ("py.typed", "*.css", "*.html", "*.jinja", "*.js", "*.tsv", "tiny/*", "triton_kernels/*.py")
exec((ROOT / "elmo_scratch" / "version.py").read_text(encoding="utf-8"), VERSION)


def checksum(paths: Iterable[Path]) -> int:
    """Of what the files hold."""
    return zlib.crc32(b"".join(path.read_bytes() for path in paths))


def pinned_requirements() -> List[str]:
    """The lines of requirements.txt, which pins the versions that the tests ran with."""
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    requirements = (line.partition("#")[0].strip() for line in lines)
    return [requirement for requirement in requirements if requirement]


class BuildLevels(build_ext):
    """Compiles `SIMD_KERNELS` for each level, then all else, and links them to one library."""

    def get_ext_filename(self, fullname: str) -> str:
        """The library serves every Python, so its name has no tag of the one at hand."""
        return f"{fullname.replace('.', '/')}.so"

    def build_extension(self, ext: Extension) -> None:
        for level in LEVELS:
            ext.extra_objects += self.compiler.compile(
                [str(SIMD_KERNELS)],
                output_dir=str(Path(self.build_temp) / level),
                macros=[("INSTRUCTIONS", level)],
                extra_postargs=ext.extra_compile_args,
                depends=ext.depends,
            )
        super().build_extension(ext)


class WheelOfAllPythons(bdist_wheel):
    """A wheel for one platform and all of Python's releases."""

    def get_tag(self) -> Tuple[str, str, str]:
        return "py3", "none", super().get_tag()[-1]


setup(
    name="elmo-scratch",
    version=VERSION["VERSION"],
    description="ELMo from scratch: an AllenNLP plugin for current PyTorch",
    long_description=(ROOT / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    license_files=["LICENSE"],
    python_requires=">=3.10,<3.14",
    packages=[
        *find_packages(include=["elmo_scratch", "elmo_scratch.*", "elmo_scratch_compat"]),
        RECIPES,
    ],
    package_dir={RECIPES: "training_config/bilm"},
    package_data={
        "elmo_scratch": [f"**/{pattern}" for pattern in DATA],
        RECIPES: ["*.jsonnet", "*.libsonnet"],
    },
    # A library that ctypes loads. Where there is no compiler PyTorch's operations take its place.
    ext_modules=[
        Extension(
            "elmo_scratch.kernels.native.kernels",
            [str(path) for path in SOURCES if path != SIMD_KERNELS],
            depends=[*map(str, [SIMD_KERNELS, *HEADERS]), "setup.py"],
            # By which library.py knows a library that was made before these files changed.
            define_macros=[("CHECKSUM", f"{checksum([*SOURCES, *HEADERS])}u")],
            extra_compile_args=[*INSTRUCTIONS, "-std=c++17", "-O3", "-ffp-contract=off"]
            + ["-fno-fast-math", "-fno-math-errno", "-fno-trapping-math", "-fopenmp"]
            # GCC 12 warns of its own headers, and of vectors as arguments of templates.
            + ["-Wno-maybe-uninitialized", "-Wno-ignored-attributes"],
            extra_link_args=["-fno-fast-math", "-fopenmp"],
            optional=True,
        )
    ]
    if sys.platform == "linux"
    else [],
    cmdclass={"build_ext": BuildLevels, "bdist_wheel": WheelOfAllPythons},
    # What the package itself imports, as wide as it works, so that installing it never changes an
    # environment that requirements.txt has made. AllenNLP is left out: its metadata asks for
    # torch < 1.13, and no resolver can satisfy both. The extra `allennlp` has what AllenNLP needs.
    install_requires=[
        "torch>=2.6",
        "numpy>=1.26",
        "cached-path>=1.1",
        "filelock",
        "h5py>=3.6",
        "lmdb>=1.2",
        "pyyaml>=5.4",
        "requests>=2.28",
        "safetensors>=0.4",
        "scipy>=1.9",
        "threadpoolctl>=2.0",
        "spacy>=3.8",
    ],
    extras_require={
        "allennlp": pinned_requirements(),
        "datasets": ["datasets>=2.16,<4"],
        "hub": ["huggingface_hub>=0.23"],
        "ray": ["ray>=2.40"],
        "report": ["jinja2>=3.1", "matplotlib>=3.8"],
        "search": ["optuna>=4"],
        "sklearn": ["scikit-learn>=1.6"],
        "vectors": ["gensim>=4.3.3"],
        "zst": ["zstandard>=0.22"],
    },
    entry_points={
        # What `nlp.add_pipe("elmo_scratch")` finds.
        "spacy_factories": [
            "elmo_scratch = elmo_scratch.integrations.spacy_component:make_elmo_component"
        ],
        # PyTorch calls this at the end of `import torch`.
        "torch.backends": ["elmo_scratch = elmo_scratch_compat:apply"],
    },
    # An editable installation puts this folder on the path. By default an import hook finds it,
    # which in the folder above comes too late: there Python takes the folder for the package.
    options={"editable_wheel": {"mode": "compat"}},
)
