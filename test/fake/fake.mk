# SPDX-License-Identifier: Apache-2.0
.PHONY: fake
fake:
