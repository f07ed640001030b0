/* SPDX-License-Identifier: Apache-2.0 */
/* What a loop that waits for another core does between two looks. */
#ifndef NCCLSHIM_BASE_PAUSE_H
#define NCCLSHIM_BASE_PAUSE_H

static inline void pause_once(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
