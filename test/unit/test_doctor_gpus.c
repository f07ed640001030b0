/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shim/prove/doctor/doctor_gpus.h"

#define N 4

static struct doctor_gpu gpu[N];
static struct doctor_pair pair[N * N];

/* Four cards behind two switches, on two CPUs' host bridges; peer access everywhere. */
static struct doctor_gpus box(void)
{
    struct doctor_gpus g = {.loaded = true, .count = N, .gpu = gpu, .pair = pair, .driver = "580.65"};

    for (unsigned i = 0; i < N; i++) {
        gpu[i] = (struct doctor_gpu){.name = "NVIDIA RTX PRO 6000", .gen = 5, .gen_max = 5, .gen_gpu = 5, .width = 16,
                                     .width_max = 16, .pstate = 0, .mig = -1};
        snprintf(gpu[i].bus, sizeof(gpu[i].bus), "00000000:%u1:00.0", i);
        for (unsigned j = 0; j < N; j++)
            pair[i * N + j] = (struct doctor_pair){0, 0, 5, i / 2 == j / 2 ? 10 : 50};
    }
    return g;
}

static const struct doctor_finding *find(const struct doctor_list *l, const char *topic)
{
    for (size_t i = 0; i < l->count; i++)
        if (!strcmp(l->list[i].topic, topic))
            return &l->list[i];
    return NULL;
}

static void check(const struct doctor_gpus *g, const char *topic, enum doctor_level level, const char *text)
{
    struct doctor_list l = {0};
    const struct doctor_finding *f;

    doctor_gpus_judge(&l, g);
    f = find(&l, topic);
    assert_non_null(f);
    assert_string_equal(f->text, text);
    assert_int_equal(f->level, level);
    doctor_list_free(&l);
}

static void a_sound_box_is_told_in_four_lines(void **unused)
{
    struct doctor_gpus g = box();
    struct doctor_list l = {0};

    (void)unused;
    doctor_gpus_judge(&l, &g);
    assert_int_equal(l.count, 4);
    assert_int_equal(doctor_count(&l, DOCTOR_OK), 4);
    doctor_list_free(&l);
    check(&g, "gpus", DOCTOR_OK, "4 x NVIDIA RTX PRO 6000, driver 580.65");
    check(&g, "p2p", DOCTOR_OK, "peer access works between all 4 GPUs (6 of 6 pairs)");
    check(&g, "links", DOCTOR_OK, "6 pairs of GPUs: 2 through one PCIe switch, 4 between CPUs; no NVLink");
    check(&g, "pcie", DOCTOR_OK, "PCIe 5.0 x16 on every GPU");
}

static void peer_access_that_fails_gives_its_reason(void **unused)
{
    struct doctor_gpus g = box();

    (void)unused;
    pair[0 * N + 3].read = 1;
    check(&g, "p2p", DOCTOR_WARN, "peer access works between 5 of 6 pairs of GPUs: the chipset does not support it");
    for (int i = 0; i < N * N; i++)
        pair[i].read = pair[i].write = -1;
    check(&g, "p2p", DOCTOR_UNKNOWN, "NVML does not tell whether peer access works");
}

static void nvlink_goes_before_where_the_cards_are_plugged(void **unused)
{
    struct doctor_gpus g = box();

    (void)unused;
    for (int i = 0; i < N * N; i++)
        pair[i].nvlink = 0;
    check(&g, "links", DOCTOR_OK, "6 pairs of GPUs: 6 over NVLink");
}

static void an_idle_card_with_a_slow_link_is_no_fault_and_a_narrow_one_is(void **unused)
{
    struct doctor_gpus g = box();

    (void)unused;
    gpu[1].gen = 1;
    gpu[1].pstate = 8;
    check(&g, "pcie", DOCTOR_OK, "PCIe 5.0 x16 on every GPU");
    gpu[1].pstate = 0;
    check(&g, "pcie", DOCTOR_WARN, "PCIe: GPU 1 (00000000:11:00.0) runs at PCIe 1.0 of 5.0 though it is busy");
    gpu[1].gen = 5;
    gpu[2].width = 8;
    check(&g, "pcie", DOCTOR_WARN, "PCIe: GPU 2 (00000000:21:00.0) has x8 of x16 lanes");
    gpu[2].width = 16;
    gpu[3].gen_max = 4;
    gpu[3].gen = 4;
    check(&g, "pcie", DOCTOR_WARN, "PCIe: GPU 3 (00000000:31:00.0) can do PCIe 5.0, its slot 4.0");
}

static void no_nvml_and_no_gpu_are_unknown_and_never_bad(void **unused)
{
    struct doctor_gpus g = {.why = "no such file"};

    (void)unused;
    check(&g, "gpus", DOCTOR_UNKNOWN, "GPUs can't be looked at: no such file");
    g.loaded = true;
    check(&g, "gpus", DOCTOR_UNKNOWN, "NVML is there, but it shows no GPU");
}

static void check_level(const char *vendor, const char *env, size_t bytes, enum doctor_level level, const char *text)
{
    struct doctor_gpus g = box();
    struct doctor_env block = {env, bytes};
    struct doctor_list l = {0};

    doctor_p2p_level_judge(&l, &g, vendor, &block);
    assert_int_equal(l.count, 1);
    assert_string_equal(l.list[0].text, text);
    assert_int_equal(l.list[0].level, level);
    doctor_list_free(&l);
}
#define ENV(text) text, sizeof(text)

static void how_far_nccl_goes_depends_on_the_cpu_and_the_variable(void **unused)
{
    (void)unused;
    check_level("GenuineIntel", ENV("A=1"), DOCTOR_WARN,
                "NCCL_P2P_LEVEL is unset: with this CPU NCCL stops at PXB, 4 pairs are further apart");
    check_level("AuthenticAMD", ENV("A=1"), DOCTOR_OK, "NCCL_P2P_LEVEL is unset: NCCL uses peer access between all pairs");
    check_level("Strange", ENV("A=1"), DOCTOR_UNKNOWN,
                "NCCL_P2P_LEVEL is unset; how far NCCL goes with this CPU is not known");
    check_level("GenuineIntel", ENV("NCCL_P2P_LEVEL=SYS"), DOCTOR_OK, "NCCL_P2P_LEVEL=SYS reaches all pairs");
    check_level("AuthenticAMD", ENV("NCCL_P2P_LEVEL=PHB"), DOCTOR_WARN,
                "NCCL_P2P_LEVEL=PHB: 4 pairs are further apart and go through host memory");
    check_level("AuthenticAMD", ENV("NCCL_P2P_LEVEL=LOC"), DOCTOR_WARN,
                "NCCL_P2P_LEVEL=LOC: 6 pairs are further apart and go through host memory");
    check_level("AuthenticAMD", ENV("NCCL_P2P_LEVEL=1"), DOCTOR_WARN,
                "NCCL_P2P_LEVEL=1: 4 pairs are further apart and go through host memory");
    check_level("AuthenticAMD", ENV("NCCL_P2P_LEVEL=sys"), DOCTOR_BAD,
                "NCCL_P2P_LEVEL=sys is no level: NCCL takes it for unset without a word");
    check_level("AuthenticAMD", ENV("NCCL_P2P_DISABLE=1"), DOCTOR_WARN,
                "NCCL_P2P_DISABLE=1: NCCL makes no use of peer access, which works here");
    check_level("AuthenticAMD", ENV("NCCL_P2P_DISABLE=0"), DOCTOR_OK,
                "NCCL_P2P_LEVEL is unset: NCCL uses peer access between all pairs");
}

static bool is_seven(void *user, uint32_t pid)
{
    (void)user;
    return pid == 7;
}

static void others_on_the_gpus_matter_only_beside_a_server_that_is_looked_at(void **unused)
{
    struct doctor_gpus g = box();
    struct doctor_list l = {0};

    (void)unused;
    gpu[0].processes = 2;
    gpu[0].pids[0] = 7;
    gpu[0].pids[1] = 8;
    doctor_neighbours_judge(&l, &g, NULL, NULL);
    doctor_neighbours_judge(&l, &g, is_seven, NULL);
    gpu[0].processes = 1;
    doctor_neighbours_judge(&l, &g, is_seven, NULL);
    assert_int_equal(l.list[0].level, DOCTOR_OK);
    assert_string_equal(l.list[0].text, "processes compute on the GPUs: 7 on GPU 0, 8 on GPU 0");
    assert_int_equal(l.list[1].level, DOCTOR_WARN);
    assert_string_equal(l.list[1].text, "other processes compute on the GPUs: 8 on GPU 0");
    assert_string_equal(l.list[2].text, "no other process computes on the GPUs");
    doctor_list_free(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sound_box_is_told_in_four_lines),
        cmocka_unit_test(peer_access_that_fails_gives_its_reason),
        cmocka_unit_test(nvlink_goes_before_where_the_cards_are_plugged),
        cmocka_unit_test(an_idle_card_with_a_slow_link_is_no_fault_and_a_narrow_one_is),
        cmocka_unit_test(no_nvml_and_no_gpu_are_unknown_and_never_bad),
        cmocka_unit_test(how_far_nccl_goes_depends_on_the_cpu_and_the_variable),
        cmocka_unit_test(others_on_the_gpus_matter_only_beside_a_server_that_is_looked_at),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
