# SPDX-License-Identifier: Apache-2.0
# The package on a system that has nothing of ours: root, mmdebstrap and a mirror are needed.
.PHONY: test-package
test-package: deb
	@sh test/package/clean_system.sh $(abspath $(DEB_DIR))/ncclshim_$(VERSION)_$$(dpkg --print-architecture).deb
