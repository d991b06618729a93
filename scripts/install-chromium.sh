#!/bin/sh
# Install Debian's Chromium for the tests of the report's page, where this machine allows it.
# Never fails: without a browser those tests are skipped, and say so.
set -u

has_browser() {
    command -v chromium >/dev/null 2>&1 || command -v chromium-browser >/dev/null 2>&1 ||
        command -v google-chrome >/dev/null 2>&1
}

say() { echo "install-chromium: $*"; }

if has_browser; then
    exit 0
fi
if ! command -v apt-get >/dev/null 2>&1; then
    say "no apt-get here; install Chromium yourself to run the browser tests"
    exit 0
fi
if [ "$(id -u)" = 0 ]; then
    as_root=""
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
    as_root="sudo -n"
else
    say "not root, and sudo asks for a password; install Chromium yourself to run the browser tests"
    exit 0
fi
say "installing chromium (once)"
export DEBIAN_FRONTEND=noninteractive
install="apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core fonts-noto-color-emoji"
$as_root env DEBIAN_FRONTEND=noninteractive $install >/dev/null 2>&1 || {
    $as_root apt-get update -qq >/dev/null 2>&1
    $as_root env DEBIAN_FRONTEND=noninteractive $install >/dev/null 2>&1
}
has_browser || say "chromium could not be installed; the browser tests will be skipped"
exit 0
