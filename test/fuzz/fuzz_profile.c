/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The profile reader under libFuzzer: no crash, no leak on any bytes; and what it accepts reads
 * back, from what `show --ini` prints, to the same profile.
 *
 *   make build/fuzz/fuzz_profile && build/fuzz/fuzz_profile -max_total_time=600 CORPUS test/profiles
 *
 * `inherit` is looked up as ever: run it with NCCLSHIM_PROFILE_PATH=profiles to reach that code.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/profile/apply.h"
#include "shim/profile/check.h"
#include "shim/profile/write.h"
#include "test/unit/profile_equal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void die(const char *what, const char *text, const struct error *e)
{
    fprintf(stderr, "%s: line %d: %s\n--\n%s\n--\n", what, e->line, e->text, text);
    abort();
}

/* A rule on a profile that loads must not crash; and the profile alone must hold by itself. */
static void judge(const struct profile *p)
{
    static char *const env[] = {"NCCL_PROTO=Simple",    "NCCL_BUFFSIZE=4M", "NCCL_MAX_CTAS=2",
                                "NCCL_ALGO=ring, tree", "NCCL_WRONG=1",     NULL};
    struct findings f = {NULL, 0, false};
    struct settings s;

    if (settings_merge(p, env, NULL, &s))
        abort();
    check_settings(p, &s, NULL, 22809, &f);
    check_settings(p, &s, NULL, 21800, &f);
    findings_free(&f);
    settings_free(&s);
}

static void round_trip(const struct profile *p)
{
    struct profile *again;
    struct error e = {"", 0, ""};
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    if (!out || profile_write(p, out) || fclose(out))
        abort();
    if (profile_parse(text, size, "again.ini", &again, &e))
        die("what was written is refused", text, &e);
    if (!same_profile(p, again))
        die("what was written reads as another profile", text, &e);
    profile_free(again);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *bytes = malloc(size + 1);
    struct profile *p;
    struct error e;

    if (!bytes)
        return 0;
    memcpy(bytes, data, size);
    bytes[size] = '\0';
    if (!profile_parse(bytes, size, "fuzz.ini", &p, &e)) {
        judge(p);
        round_trip(p);
        profile_free(p);
    } else if (!e.text[0]) {
        abort(); /* refused without a word */
    }
    free(bytes);
    return 0;
}
