# SPDX-License-Identifier: Apache-2.0
UNIT_FLAGS_test_nccl_api := -DNCCL_INCLUDE='"$(NCCL_INC)"'
