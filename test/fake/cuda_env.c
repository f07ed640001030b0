/* SPDX-License-Identifier: Apache-2.0 */
#include "test/fake/cuda_env.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct sim_env env;
static pthread_once_t env_once = PTHREAD_ONCE_INIT;

static int number(const char *name, int lowest, int highest, int otherwise)
{
    const char *text = getenv(name);
    if (text == NULL || *text == '\0') {
        return otherwise;
    }
    char *end;
    long value = strtol(text, &end, 10);
    return *end == '\0' && value >= lowest && value <= highest ? (int)value : otherwise;
}

static const char *text(const char *name)
{
    const char *value = getenv(name);
    /* A copy: the program may change its environment while worker threads run. */
    return value != NULL && *value != '\0' ? strdup(value) : NULL;
}

static void read_env(void)
{
    env.gpus = number("NCCLSHIM_FAKE_GPUS", 0, 64, 8);
    env.sm = number("NCCLSHIM_FAKE_SM", 30, 129, 90);
    env.driver = number("NCCLSHIM_FAKE_DRIVER", 1000, 99990, 13000);
    env.pace = number("NCCLSHIM_FAKE_PACE", 0, 1, 1) == 1;
    env.sync_load = number("NCCLSHIM_FAKE_SYNC_LOAD", 0, 1, 0) == 1;
    env.fail = text("NCCLSHIM_FAKE_FAIL");
    env.counts = text("NCCLSHIM_FAKE_COUNTS");
}

const struct sim_env *sim_env(void)
{
    pthread_once(&env_once, read_env);
    return &env;
}
