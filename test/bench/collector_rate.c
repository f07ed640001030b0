/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The collector against its aim: a graph of 10,000 calls, a million records a second, nothing lost,
 * under one core and under 64 MiB. And how fast statistics take records that lie in memory.
 *
 * The writer is a process of its own that keeps to a million records a second by the clock. At that
 * rate a ring holds half a second: on a machine that keeps the collector waiting for so long,
 * records are lost whatever it does, and then only that each is counted is held against it.
 */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "shim/base/paths.h"
#include "shim/prove/run/collector.h"
#include "shim/stats/accum.h"
#include "test/unit/logfixture.h"

#define RATE 1000000u
#define SECONDS 5u
#define CAPACITY (1u << 19)

static int failed;

static void skip(const char *name, const char *why)
{
    printf("skip %s: %s\n", name, why);
}

static void say(bool good, const char *name, const char *why)
{
    printf("%s %s: %s\n", good ? "ok" : "not ok", name, why);
    failed |= !good;
}

static double cpu_seconds(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

/* Resident memory that is ours alone: not the pages of the mapped log. */
static long anonymous_kib(void)
{
    FILE *f = fopen("/proc/self/status", "r");
    char line[256];
    long kib = 0;

    while (f && fgets(line, sizeof(line), f))
        sscanf(line, "RssAnon: %ld", &kib);
    if (f)
        fclose(f);
    return kib;
}

/* Durations as in a server: each call site around its own value, with a tail now and then. */
static uint64_t duration_ns(uint64_t n, uint32_t site)
{
    uint64_t mixed = (n * 0x9E3779B97F4A7C15ull) >> 40;

    return 5000 + site % 100 * 200 + mixed % 800 + (mixed % 997 == 0 ? 300000 : 0);
}

static void write_record(struct fixture *x, uint64_t *clock_ns)
{
    uint64_t n = x->next++, start = *clock_ns + 500 + n % 64;
    uint32_t site = (uint32_t)(n % x->sites);

    *clock_ns = start + duration_ns(n, site);
    fixture_lap(x, n);
    fixture_half(x, n, 0, start, site);
    fixture_half(x, n, 1, *clock_ns, (uint32_t)(n / x->sites));
}

static void write_at_rate(struct fixture *x)
{
    uint64_t begin = monotonic_ns(), clock_ns = begin;

    fixture_sign(x);
    while (x->next < (uint64_t)RATE * SECONDS) {
        uint64_t due = (monotonic_ns() - begin) * RATE / 1000000000ull;
        if (due > x->next + RATE / 20) { /* kept off its core: no GPU would make up for that */
            begin += (due - x->next) * (1000000000ull / RATE);
            continue;
        }
        while (x->next < due && x->next < (uint64_t)RATE * SECONDS)
            write_record(x, &clock_ns);
        usleep(500);
    }
    _exit(0);
}

static void print_warning(const struct error *e)
{
    printf("# %s: %s\n", e->file, e->text);
}

static void collect_beside(uint32_t sites)
{
    char logs[] = "/dev/shm/ncclshim-bench-XXXXXX", run[] = "/tmp/ncclshim-bench-XXXXXX", why[200],
         name[80];
    struct runfolder folder = {.fd = -1};
    struct collector_options o = {.run = &folder, .remove = true, .warn = print_warning};
    struct summary s = {0};
    struct fixture x;
    struct error e;
    double cpu, share;
    long kib, most = 0;
    uint64_t round_ns, longest_ns = 0;
    bool fits;
    pid_t writer;

    if (!mkdtemp(logs) || !mkdtemp(run) || runfolder_open(&folder, run, &e) < 0)
        exit(2);
    fixture_make(&x, logs, CAPACITY, sites);
    o.log_dir = logs;
    o.log_fd = open(logs, O_RDONLY | O_DIRECTORY);
    cpu = cpu_seconds();
    kib = anonymous_kib();
    writer = fork();
    if (writer == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        write_at_rate(&x);
    }
    usleep(10000); /* it signs the log first */
    struct collector *c = collector_new(&o, &e);
    round_ns = monotonic_ns();
    while (waitpid(writer, NULL, WNOHANG) == 0) {
        usleep(collector_round(c) * 1000);
        if (monotonic_ns() - round_ns > longest_ns)
            longest_ns = monotonic_ns() - round_ns;
        round_ns = monotonic_ns();
        if (anonymous_kib() - kib > most)
            most = anonymous_kib() - kib;
    }
    collector_finish(c);
    collector_summarize(c, &s);
    share = (cpu_seconds() - cpu) / SECONDS;
    snprintf(name, sizeof(name), "a million records a second, %u call sites", sites);
    snprintf(why, sizeof(why), "%llu timed, %llu lost, %.1f %% of a core, %.1f MiB",
             (unsigned long long)s.timed, (unsigned long long)s.lost, 100 * share,
             (double)most / 1024);
    fits = s.timed + s.lost == (uint64_t)RATE * SECONDS && share < 1 && most < 64 * 1024;
    if (fits && s.lost && longest_ns / 1000 > CAPACITY * (1000000ull / RATE)) {
        snprintf(why + strlen(why), sizeof(why) - strlen(why), "; kept waiting for %llu ms",
                 (unsigned long long)longest_ns / 1000000);
        skip(name, why);
    } else {
        say(fits && !s.lost, name, why);
    }
    collector_free(c);
    fixture_drop(&x);
    close(o.log_fd);
    snprintf(why, sizeof(why), "rm -rf %s %s", logs, run);
    if (system(why) != 0)
        exit(2);
}

static void feed_from_memory(uint32_t sites)
{
    enum { N = 10000000 };
    struct ncclshim_record *r = malloc(N * sizeof(*r));
    struct ncclshim_site *site = calloc(sites, sizeof(*site));
    struct accum a;
    uint64_t clock_ns = 1;
    char why[100], name[80];
    double rate, begin;

    for (uint32_t i = 0; i < sites; i++)
        site[i] = (struct ncclshim_site){.state = 1, .flags = 3, .capture = 1, .index = i};
    for (uint64_t n = 0; n < N; n++) {
        r[n].start_ns = clock_ns + 500;
        r[n].site = (uint32_t)(n % sites);
        clock_ns = r[n].end_ns = r[n].start_ns + duration_ns(n, r[n].site);
        r[n].run = (uint32_t)(n / sites);
        r[n].sequence = r[n].sequence2 = (uint32_t)(n + 1);
    }
    accum_init(&a);
    begin = cpu_seconds(); /* not by the clock: others may be at work on this machine */
    for (uint64_t n = 0; n < N; n += 8192)
        accum_feed(&a, 0, r + n, N - n < 8192 ? N - n : 8192, site, sites);
    rate = N / (cpu_seconds() - begin) * 1e-6;
    snprintf(name, sizeof(name), "statistics of %u call sites", sites);
    snprintf(why, sizeof(why), "%.0f million records a second and core", rate);
    say(rate > 20, name, why);
    accum_free(&a);
    free(site);
    free(r);
}

int main(void)
{
    feed_from_memory(122);
    feed_from_memory(10000);
    collect_beside(122);
    collect_beside(10000);
    return failed;
}
