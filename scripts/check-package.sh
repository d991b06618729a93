#!/bin/sh
# Builds the source archive and the wheel in dist/, checks both, and tries the wheel in empty
# environments: alone with the demo, and once with each extra. Needs the package index; about ten
# minutes. `EXTRAS="sign" sh scripts/check-package.sh` tries some extras only.
set -eu
cd "$(dirname "$0")/.."
PYTHON="${PYTHON:-python3}"
EXTRAS="${EXTRAS-anndata cluster sign federated docs}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

imports() {
    case "$1" in
        anndata) echo "anndata" ;;
        cluster) echo "dask, distributed" ;;
        sign) echo "cryptography" ;;
        federated) echo "nvflare" ;;
        docs) echo "sphinx, myst_parser, furo, numpydoc" ;;
    esac
}

"$PYTHON" -m venv "$work/tools"
"$work/tools/bin/pip" install --quiet --disable-pip-version-check build twine cyclonedx-bom
rm -rf dist
# The wheel is built from the source archive, so that the archive is shown to be complete.
"$work/tools/bin/python" -m build --outdir dist . > "$work/build.log" || { cat "$work/build.log"; exit 1; }
"$work/tools/bin/twine" check --strict dist/*
wheel=$(echo "$PWD"/dist/*.whl)

for extra in "" $EXTRAS; do
    rm -rf "$work/env"
    "$PYTHON" -m venv "$work/env"
    "$work/env/bin/pip" install --quiet --disable-pip-version-check "$wheel${extra:+[$extra]}"
    "$work/env/bin/pip" check
    if [ -z "$extra" ]; then
        (cd "$work" && "$work/env/bin/jigsaw" demo)
        # What the wheel brings with it, for people who keep account of what they install.
        mkdir -p build
        "$work/tools/bin/cyclonedx-py" environment "$work/env/bin/python" --output-file build/sbom.json
    else
        "$work/env/bin/python" -c "import $(imports "$extra"), jigsaw_crl"
        "$work/env/bin/jigsaw" --version
        echo "the extra $extra installs and is imported"
    fi
done
ls -l dist
