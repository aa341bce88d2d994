#!/bin/sh
# A guest's kernel (Debian's, as its package has it) and its ramdisk with one program, init.c.
#
#   tools/guest/build.sh FOLDER     writes FOLDER/vmlinuz and FOLDER/initramfs
#
# What is in the folder already is kept, as long as init.c and this file stay as they are.
set -eu

source_dir=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
folder=${1:?Usage: tools/guest/build.sh FOLDER}
wanted=$(cat "$source_dir/init.c" "$source_dir/build.sh" | sha256sum)
[ "$(cat "$folder/built" 2>/dev/null)" != "$wanted" ] || exit 0

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$folder" "$work/root/dev" "$work/root/proc"

package=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/^ *Depends: \(linux-image-.*\)$/\1/p')
[ -n "$package" ] || { echo 'Debian has no linux-image-cloud-amd64: is this Debian on amd64?' >&2; exit 2; }
(cd "$work" && apt-get download -qq "$package")
dpkg-deb --fsys-tarfile "$work"/linux-image-*.deb | tar -x -C "$work" --wildcards './boot/vmlinuz-*'
mv "$work"/boot/vmlinuz-* "$folder/vmlinuz"

gcc -O2 -Wall -Wextra -static -pthread -o "$work/root/init" "$source_dir/init.c"
mknod "$work/root/dev/console" c 5 1
(cd "$work/root" && find . | cpio --quiet -o -H newc | gzip -9) > "$folder/initramfs"
printf '%s' "$wanted" > "$folder/built"
