#!/usr/bin/env bash
# usage: setup.sh USE...      (build, bench, fuzz, format: see packages.txt)
# Installs the Debian packages that are missing for these uses. Nothing missing: says nothing, touches nothing.
. "$(dirname "$0")/common.sh"

wanted=()
for use; do
  mapfile -t -O "${#wanted[@]}" wanted < <(awk -v use="$use" '$1 !~ /^#/ && $2 == use {print $1}' "$ROOT/tools/packages.txt")
done
[ ${#wanted[@]} -gt 0 ] || die "nothing is known of '$*' (build, bench, fuzz, format)"
command -v dpkg-query > /dev/null || {
  say "this is no Debian: if the build fails, install what tools/packages.txt lists in your system's way"
  exit 0
}

missing=()
for package in "${wanted[@]}"; do
  [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2> /dev/null || true)" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

install="apt-get install -y --no-install-recommends ${missing[*]}"
if [ "$(id -u)" = 0 ]; then
  as_root=
elif command -v sudo > /dev/null && { [ -t 0 ] || sudo -n true 2> /dev/null; }; then
  as_root=sudo
else
  die "missing packages. As root, run:
    apt-get update && $install"
fi
say "installing packages: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
$as_root apt-get update -q >&2 && $as_root $install >&2 || die "could not install the packages. As root, run:
    apt-get update && $install"
