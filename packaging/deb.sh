#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: deb.sh DEB_DIR VERSION; `make deb` calls it
# Makes DEB_DIR/ncclshim_VERSION_ARCH.deb of DEB_DIR/deb/root, where make has put what it installs. dpkg-dev does it
# all; no debhelper, because nothing has to be done on the target: no daemon, no library in a public place, no
# configuration.
#
#   DEBFULLNAME, DEBEMAIL   who stands in it as maintainer
#   SOURCE_DATE_EPOCH       its date (default: that of the last commit); the same sources give the same package
set -eu
out=$1 version=$2
stage=$out/deb
root=$stage/root
doc=$root/usr/share/doc/ncclshim
maintainer="${DEBFULLNAME:-ncclshim maintainers} <${DEBEMAIL:-ncclshim@example.com}>"
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH

case $(LC_ALL=C readelf -h "$root/usr/bin/ncclshim") in
*X86-64*) arch=amd64 tools=x86_64-linux-gnu ;;
*AArch64*) arch=arm64 tools=aarch64-linux-gnu ;;
esac

umask 022
cd "$root"
chmod -R u+rwX,go+rX,go-w . # whatever the caller's umask is
find usr/bin usr/lib -type f | while read -r f; do
    $tools-strip --strip-unneeded --remove-section=.comment --remove-section=.note "$f"
done
gzip -9n usr/share/man/man1/*.1

cat >"$doc/copyright" <<EOF
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: ncclshim

Files: *
Copyright: $(date -u -d "@$SOURCE_DATE_EPOCH" +%Y) the authors of ncclshim
License: Apache-2.0
 On Debian systems the text is in /usr/share/common-licenses/Apache-2.0.
EOF
gzip -9n >"$doc/changelog.gz" <<EOF
ncclshim ($version) unstable; urgency=medium

  * What has changed is told by the history of the sources.

 -- $maintainer  $(date -R -u -d "@$SOURCE_DATE_EPOCH")
EOF

# The stand-ins are private, and what is linked to them finds them by LD_LIBRARY_PATH.
mkdir "$stage/debian"
: >"$stage/debian/control"
depends=$(cd "$stage" && DEB_HOST_ARCH=$arch dpkg-shlibdeps -O --ignore-missing-info \
    -l"$root/usr/lib/ncclshim/example/simulator" $(find root/usr/bin root/usr/lib -type f) 2>said) || {
    cat "$stage/said" >&2
    exit 1
}

mkdir -p DEBIAN
cat >DEBIAN/control <<EOF
Package: ncclshim
Version: $version
Architecture: $arch
Maintainer: $maintainer
Installed-Size: $(du -sk --exclude=DEBIAN . | cut -f1)
Depends: ${depends#shlibs:Depends=}
Section: utils
Priority: optional
Description: profiles for NCCL, and what each collective took on the GPU
 A shared object that goes in front of an inference server with LD_PRELOAD. It
 gives NCCL the settings of a named profile and writes down when every
 collective started and ended on the GPU, also inside CUDA graphs. The command
 reports, compares profiles and searches for better ones.
EOF
find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum >DEBIAN/md5sums
cd "$OLDPWD"
dpkg-deb --root-owner-group -Zxz -b "$root" "$out/ncclshim_${version}_$arch.deb" >/dev/null
rm -rf "$stage"
echo "$out/ncclshim_${version}_$arch.deb"
