/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment of the simulated CUDA driver. Read once, at the first driver call.
 *
 *   NCCLSHIM_FAKE_GPUS=N        number of devices (default 8)
 *   NCCLSHIM_FAKE_SM=NN         compute capability times ten, of all devices (default 90)
 *   NCCLSHIM_FAKE_DRIVER=NNNNN  driver version (default 13000): what cuDriverGetVersion says, and
 *                               the newest functions that cuGetProcAddress gives out
 *   NCCLSHIM_FAKE_PACE=0        host calls that wait for the device don't sleep until the host's
 *                               clock has caught up with the device's virtual clock
 *   NCCLSHIM_FAKE_SYNC_LOAD=1   loading a module, allocating, freeing, registering and
 * instantiating wait until what runs on that device has ended, as they may on a real one: shows
 * programs that deadlock by it NCCLSHIM_FAKE_FAIL=LIST     comma list of FUNCTION[:NTH[:ERROR]]:
 * the NTH call (default 1, `*` = every call) of FUNCTION (base or exact name) does nothing and
 *                               returns ERROR (default 999, unknown)
 *   NCCLSHIM_FAKE_COUNTS=FILE   at exit, append a line "name count" for each function called
 *                               and for the launches in each memory synchronization domain
 */
#ifndef NCCLSHIM_TEST_FAKE_CUDA_ENV_H
#define NCCLSHIM_TEST_FAKE_CUDA_ENV_H

#include <stdbool.h>

struct sim_env {
    int gpus;
    int sm;
    int driver;
    bool pace;
    bool sync_load;
    const char *fail;
    const char *counts;
};

/* The settings; the first call reads the environment. Any thread. */
const struct sim_env *sim_env(void);

#endif
