/* SPDX-License-Identifier: Apache-2.0 */
/* Linked to NCCL, as TensorRT-LLM, LMDeploy and nccl-tests are. */
#include "test/compat/calls.h"

int main(void)
{
    static const struct calls c = CALLS_LINKED;
    const struct calls *const one[] = {&c};

    calls_main(one, 1);
    return 0;
}
