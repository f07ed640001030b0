/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL_DEBUG: levels, subsystems, the file, the look of a line. */
#include "test/fake/nccl_fake.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int level = -1; /* -1: not read yet */
static unsigned long mask;
static FILE *file;
static char host[64];
static char last_error[1024];

static const struct {
    const char *name;
    unsigned long bit;
} subsystems[] = {
    {"INIT", 0x1},         {"COLL", 0x2},   {"P2P", 0x4},        {"SHM", 0x8},
    {"NET", 0x10},         {"GRAPH", 0x20}, {"TUNING", 0x40},    {"ENV", 0x80},
    {"ALLOC", 0x100},      {"CALL", 0x200}, {"PROXY", 0x400},    {"NVLS", 0x800},
    {"BOOTSTRAP", 0x1000}, {"REG", 0x2000}, {"PROFILE", 0x4000}, {"RAS", 0x8000},
    {"DESTROY", 0x10000},  {"ALL", ~0ul},
};

static const char *const levels[] = {"NONE", "VERSION", "WARN", "INFO", "ABORT", "TRACE"};

/* The first line may come while the env plugin is being opened: then, as in NCCL, raw getenv. */
static const char *ask(const char *name)
{
    return fake_env_ready() ? fake_getenv(name) : getenv(name);
}

static unsigned long parse_subsystems(const char *text)
{
    bool invert = text[0] == '^';
    unsigned long result = invert ? ~0ul : 0;
    char *copy = strdup(text + invert), *save = NULL;
    for (char *t = strtok_r(copy, ",", &save); t; t = strtok_r(NULL, ",", &save))
        for (size_t i = 0; i < sizeof(subsystems) / sizeof(*subsystems); i++)
            if (!strcasecmp(t, subsystems[i].name))
                result = invert ? result & ~subsystems[i].bit : result | subsystems[i].bit;
    free(copy);
    return result;
}

/* %h is the host, %p the process, %% a percent sign; anything else stays. */
static FILE *open_file(const char *pattern)
{
    char path[4096];
    size_t n = 0;
    for (const char *p = pattern; *p && n + 300 < sizeof(path); p++) {
        if (*p != '%' || !p[1])
            path[n++] = *p;
        else if (*++p == 'h')
            n += (size_t)snprintf(path + n, sizeof(path) - n, "%s", host);
        else if (*p == 'p')
            n += (size_t)snprintf(path + n, sizeof(path) - n, "%d", (int)getpid());
        else if (*p == '%')
            path[n++] = '%';
        else {
            path[n++] = '%';
            path[n++] = *p;
        }
    }
    path[n] = 0;
    FILE *f = n ? fopen(path, "w") : NULL;
    if (f)
        setlinebuf(f);
    return f;
}

static void init_locked(void)
{
    const char *text = ask("NCCL_DEBUG");
    int l = NCCL_LOG_NONE;
    for (int i = 1; text && i < 6; i++)
        if (!strcasecmp(text, levels[i]))
            l = i;
    const char *subsys = ask("NCCL_DEBUG_SUBSYS");
    mask = subsys ? parse_subsystems(subsys) : NCCL_INIT | NCCL_BOOTSTRAP | NCCL_ENV;
    ask("NCCL_WARN_ENABLE_DEBUG_INFO");
    ask("NCCL_DEBUG_TIMESTAMP_LEVELS");
    ask("NCCL_DEBUG_TIMESTAMP_FORMAT");
    if (gethostname(host, sizeof(host) - 1))
        snprintf(host, sizeof(host), "localhost");
    host[strcspn(host, ".")] = 0;
    const char *name = ask("NCCL_DEBUG_FILE");
    if (file && file != stdout)
        fclose(file);
    file = l > NCCL_LOG_VERSION && name ? open_file(name) : NULL;
    if (!file)
        file = stdout;
    atomic_store(&level, l);
}

bool fake_log_wanted(ncclDebugLogLevel l, unsigned long flags)
{
    int now = atomic_load_explicit(&level, memory_order_acquire);
    return now < 0 || (now >= (int)l && (flags & mask));
}

void fake_log(ncclDebugLogLevel l, unsigned long flags, const char *where, int line,
              const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    pthread_mutex_lock(&lock);
    if (atomic_load(&level) < 0)
        init_locked();
    if (l == NCCL_LOG_WARN) {
        va_list copy;
        va_copy(copy, ap);
        vsnprintf(last_error, sizeof(last_error), fmt, copy);
        va_end(copy);
    }
    if ((int)l <= atomic_load(&level) && (flags & mask)) {
        char text[1024], stamp[64] = "";
        if (l == NCCL_LOG_WARN) {
            struct tm tm;
            time_t now = time(NULL);
            strftime(stamp, sizeof(stamp), "[%F %T] ", localtime_r(&now, &tm));
        }
        CUdevice dev = 0;
        if (fake_cu.cuCtxGetDevice && fake_cu.cuCtxGetDevice(&dev) != CUDA_SUCCESS)
            dev = 0;
        vsnprintf(text, sizeof(text), fmt, ap);
        if (l == NCCL_LOG_VERSION)
            fprintf(file, "%s\n", text);
        else if (l == NCCL_LOG_WARN)
            fprintf(file, "\n%s%s:%d:%d [%d] %s:%d NCCL WARN %s\n", stamp, host, (int)getpid(),
                    (int)syscall(SYS_gettid), dev, where, line, text);
        else
            fprintf(file, "%s:%d:%d [%d] NCCL INFO %s\n", host, (int)getpid(),
                    (int)syscall(SYS_gettid), dev, text);
        fflush(file);
    }
    pthread_mutex_unlock(&lock);
    va_end(ap);
}

void fake_show_version(int rank)
{
    static atomic_flag shown = ATOMIC_FLAG_INIT;
    if (atomic_load(&level) < 0)
        (void)fake_log_wanted(NCCL_LOG_INFO, 0), fake_log(NCCL_LOG_TRACE, 0, __func__, 0, "%s", "");
    int l = atomic_load(&level);
    if (l == NCCL_LOG_NONE || (l <= NCCL_LOG_WARN && rank != 0) || atomic_flag_test_and_set(&shown))
        return;
    fake_log(l <= NCCL_LOG_WARN ? NCCL_LOG_VERSION : NCCL_LOG_INFO, NCCL_ALL, __func__, __LINE__,
             "NCCL version %d.%d.%d+cuda13.0", FAKE_MAJOR, FAKE_MINOR, FAKE_PATCH);
}

const char *fake_last_error(void)
{
    return last_error;
}

void fake_debug_reset(void)
{
    atomic_store(&level, -2);
}

void fake_debug_after_fork(void)
{
    pthread_mutex_init(&lock, NULL);
}

void fake_complain(const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    fprintf(stderr, "simulated NCCL: %s\n", text);
}
