/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `ncclshim report` on ten million records, as a ratio to reading the same files. Processor time: others may be at
 * work on this machine.
 */
#include <sys/resource.h>
#include <sys/wait.h>

#include "test/unit/logfixture.h"

#define LOGS 8u
#define RECORDS 1250000u /* a log */
#define SITES 122u       /* captured calls of a forward pass */
#define TIMES 3          /* the best of */

static void make_logs(const char *folder)
{
    struct fixture x;

    for (uint32_t i = 0; i < LOGS; i++) {
        fixture_make(&x, folder, 1u << 21, SITES);
        x.head->pid = 4000 + i;
        x.comm[0].ranks = LOGS;
        x.comm[0].rank = (int32_t)i;
        for (uint64_t n = 0; n < RECORDS; n++)
            fixture_put(&x, n);
        x.head->state = NCCLSHIM_LOG_CLOSED;
        munmap(x.m, x.bytes);
    }
}

static double children_s(void)
{
    struct rusage u;

    getrusage(RUSAGE_CHILDREN, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

/* Best processor time of a shell's command; -1 when it fails. */
static double best_of(const char *command)
{
    double best = -1;

    for (int i = 0; i < TIMES; i++) {
        double before = children_s();
        if (system(command) != 0)
            return -1;
        if (best < 0 || children_s() - before < best)
            best = children_s() - before;
    }
    return best;
}

int main(void)
{
    char folder[] = "/tmp/ncclshim-bench-XXXXXX", command[600];
    const char *build = getenv("BUILD");
    double plain, report;

    if (!mkdtemp(folder))
        return 2;
    make_logs(folder);
    snprintf(command, sizeof(command), "cat %s/*.ncclshim | wc -c >/dev/null", folder);
    plain = best_of(command);
    snprintf(command, sizeof(command), "%s/ncclshim report %s | grep -q '10,000,000 timed'", build ? build : "build", folder);
    report = best_of(command);
    if (report < 0 || plain <= 0)
        printf("not ok report on ten million records: it failed\n");
    else
        printf("ok report on ten million records: %.2f s, x %.1f of cat on the same files, %.0f million records a "
               "second\n",
               report, report / plain, LOGS * RECORDS / report * 1e-6);
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    return system(command) != 0 || report < 0;
}
