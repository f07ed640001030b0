/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of NCCL's functions against the headers at hand: the machine's own, and those of every
 * NCCLSHIM_TEST_NCCL_DIR/VERSION/include. A function that the table does not know fails the test.
 *
 * Read as text, since no compiler takes several nccl.h at once: in nccl.h each public function has a
 * twin that begins with "p"; the host functions of the device headers have marks of their own.
 */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shim/preload/nccl_api.h"

static const struct entry {
    const char *name;
    int since;
    bool ours; /* else a helper, which some versions have inline: known, not demanded */
} table[] = {
#define OWN(name, since, params, args) {"nccl" #name, since, true},
#define OWN0(name, since) {"nccl" #name, since, true},
#define PASS(name, since, comm, params, args) {"nccl" #name, since, true},
#define LEAVE(name, since) {"nccl" #name, since, false},
    NCCLSHIM_API_OWN(OWN) NCCLSHIM_API_OWN0(OWN0) NCCLSHIM_API_PASS(PASS) NCCLSHIM_API_TEXT(PASS)
        NCCLSHIM_API_LEAVE(LEAVE)};
#define ENTRIES (sizeof(table) / sizeof(table[0]))

static const struct entry *find(const char *name)
{
    for (size_t i = 0; i < ENTRIES; i++)
        if (!strcmp(table[i].name, name))
            return &table[i];
    return NULL;
}

struct header {
    const char *folder;
    int version;
    bool has[ENTRIES];
    int unknown, early;
};

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static void declared(struct header *h, const char *name, size_t len, const char *file)
{
    const struct entry *e;
    char text[128];

    snprintf(text, sizeof(text), "%.*s", (int)len, name);
    if (!strcmp(text, "ncclUniqueId"))
        return;
    if (!strcmp(text, "ncclGetError")) /* the twin that nccl.h up to 2.14 declares beside ncclGetLastError */
        snprintf(text, sizeof(text), "ncclGetLastError");
    e = find(text);
    if (!e) {
        print_message("%s/%s declares %s, which shim/preload/nccl_api.h does not know\n", h->folder, file, text);
        h->unknown++;
    } else {
        h->has[e - table] = true;
        if (e->since > h->version) {
            print_message("%s/%s declares %s already; the table says from %d on\n", h->folder, file, text, e->since);
            h->early++;
        }
    }
}

/* Every word that begins with `prefix` and a capital letter behind it, and is called. */
static void words(struct header *h, const char *line, const char *prefix, size_t skip, const char *file)
{
    for (const char *p = line; (p = strstr(p, prefix)); p++) {
        size_t len = strlen(prefix);
        if ((p > line && is_word(p[-1])) || p[len] < 'A' || p[len] > 'Z')
            continue;
        while (is_word(p[len]))
            len++;
        if (p[len + strspn(p + len, " ")] == '(')
            declared(h, p + skip, len - skip, file);
    }
}

/* 2.28 to 2.31 write __host__; 2.32 has a header for the host. */
static bool is_host_function(const char *line)
{
    return (strstr(line, "__host__") || !strncmp(line, "NCCL_EXTERN_C ", 14)) && !strstr(line, "INLINE") &&
           !strstr(line, "#define") && !strstr(line, "__device__");
}

static void read_file(struct header *h, const char *file, bool device)
{
    char path[4096], line[2048];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", h->folder, file);
    f = fopen(path, "r");
    while (f && fgets(line, sizeof(line), f)) {
        int major, minor, patch;
        char *comment = strstr(line, "//");
        if (comment)
            *comment = '\0';
        if (sscanf(line, "#define NCCL_MAJOR %d", &major) == 1)
            h->version = major * 10000;
        if (sscanf(line, "#define NCCL_MINOR %d", &minor) == 1)
            h->version += minor * 100;
        if (sscanf(line, "#define NCCL_PATCH %d", &patch) == 1)
            h->version += patch;
        if (!device)
            words(h, line, "pnccl", 1, file);
        else if (is_host_function(line))
            words(h, line, "nccl", 0, file);
    }
    if (f)
        fclose(f);
}

static void read_folder(struct header *h, const char *below)
{
    char path[4096];
    DIR *dir;

    snprintf(path, sizeof(path), "%s/%s", h->folder, below);
    dir = opendir(path);
    for (struct dirent *d; dir && (d = readdir(dir));) {
        snprintf(path, sizeof(path), "%s/%s", below, d->d_name);
        if (d->d_type == DT_DIR && d->d_name[0] != '.')
            read_folder(h, path);
        else if (strstr(d->d_name, ".h"))
            read_file(h, path, true);
    }
    if (dir)
        closedir(dir);
}

static void compare(const char *folder)
{
    static struct header h;
    int missing = 0;

    h = (struct header){.folder = folder};
    read_file(&h, "nccl.h", false);
    assert_true(h.version >= 20800);
    read_folder(&h, "nccl_device");
    for (size_t i = 0; i < ENTRIES; i++) {
        if (!table[i].ours || table[i].since > h.version || h.has[i])
            continue;
        print_message("%s does not declare %s; the table says from %d on\n", folder, table[i].name, table[i].since);
        missing++;
    }
    print_message("NCCL %d, %s: compared\n", h.version, folder);
    assert_int_equal(h.unknown + h.early + missing, 0);
}

static void the_table_is_that_of_the_header_at_hand(void **state)
{
    (void)state;
    compare(NCCL_INCLUDE);
}

static void the_table_is_that_of_every_header_in_the_test_folder(void **state)
{
    const char *top = getenv("NCCLSHIM_TEST_NCCL_DIR");
    DIR *dir = top ? opendir(top) : NULL;
    int seen = 0;

    (void)state;
    if (!dir) {
        print_message("NCCLSHIM_TEST_NCCL_DIR names no folder of NCCL versions\n");
        skip();
    }
    for (struct dirent *d; (d = readdir(dir));) {
        char path[4096];
        FILE *f;
        snprintf(path, sizeof(path), "%s/%s/include/nccl.h", top, d->d_name);
        f = fopen(path, "r");
        if (!f)
            continue;
        fclose(f);
        *strrchr(path, '/') = '\0';
        compare(path);
        seen++;
    }
    closedir(dir);
    assert_true(seen > 0);
}

static void every_name_stands_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < ENTRIES; i++)
        assert_ptr_equal(find(table[i].name), &table[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_is_that_of_the_header_at_hand),
        cmocka_unit_test(the_table_is_that_of_every_header_in_the_test_folder),
        cmocka_unit_test(every_name_stands_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
