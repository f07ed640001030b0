/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/prove/bench/bench_values.h"

#include <math.h>
#include <string.h>

#include "shim/base/names.h"

/*
 * X(type, largest integer up to which all integers are exact, largest value of all,
 *   bits of the exponent, of the mantissa). Integers have no exponent. The exact range of wide
 * types is cut to what keeps the period's values apart.
 */
struct kind {
    unsigned exact;
    double largest;
    int exponent, mantissa;
};

static const struct kind kinds[] = {
    [DTYPE_INT8] = {127, 127, 0, 7},          [DTYPE_UINT8] = {255, 255, 0, 8},
    [DTYPE_INT32] = {65536, 2147483647.0, 0, 31}, [DTYPE_UINT32] = {65536, 4294967295.0, 0, 32},
    [DTYPE_INT64] = {65536, 9e18, 0, 63},     [DTYPE_UINT64] = {65536, 1.8e19, 0, 64},
    [DTYPE_FLOAT16] = {2048, 65504, 5, 10},   [DTYPE_FLOAT32] = {65536, 3.4e38, 8, 23},
    [DTYPE_FLOAT64] = {65536, 1.7e308, 11, 52}, [DTYPE_BFLOAT16] = {256, 3.38e38, 8, 7},
    [DTYPE_FLOAT8E4M3] = {16, 448, 4, 3},     [DTYPE_FLOAT8E5M2] = {8, 57344, 5, 2},
};

static const struct kind *kind_of(unsigned dtype)
{
    return &kinds[dtype < sizeof(kinds) / sizeof(kinds[0]) ? dtype : DTYPE_FLOAT32];
}

/* ---- values ---------------------------------------------------------------------------------- */

/* A number that depends on place, call and salt alone. */
static uint32_t mixed(uint64_t at, uint32_t call, uint32_t salt)
{
    uint32_t x = (uint32_t)(at % BENCH_PERIOD) * 2654435761u + call * 40503u + salt * 2246822519u;

    x ^= x >> 15;
    x *= 2246822519u;
    x ^= x >> 13;
    x *= 3266489917u;
    return x ^ (x >> 16);
}

/*
 * A rank's share of a total of at most `room`: as much as each may have, or, when there are more
 * ranks than room, 1 for `room` of them, another choice at each place.
 */
static unsigned share(unsigned room, int ranks, int rank, uint32_t call, uint64_t at)
{
    unsigned most = room / (unsigned)ranks;

    if (most >= 1)
        return mixed(at, call, (uint32_t)rank + 1) % (most + 1);
    return ((unsigned)rank + mixed(at, call, 0)) % (unsigned)ranks < room;
}

/* Powers of two: 2 for some ranks, 1 for the others. */
static unsigned factor(int ranks, int rank, uint32_t call, uint64_t at)
{
    unsigned h = mixed(at, call, 0), most = ranks < 6 ? (unsigned)ranks : 6;

    return ((unsigned)rank + h) % (unsigned)ranks < (h >> 8) % (most + 1) ? 2 : 1;
}

/*
 * avg of floats: each value is a multiple of the power of two next to the number of ranks, so that
 * 1/n of it is exact where 1/n is. Integers are added up and then divided: their sum must fit.
 */
static double avg_unit(const struct kind *k, unsigned redop, int ranks)
{
    double unit = 1;

    if (redop != REDOP_AVG || !k->exponent)
        return 1;
    while (unit < ranks)
        unit *= 2;
    return unit;
}

static unsigned room_of(const struct kind *k, unsigned redop, int ranks)
{
    double room = k->largest / avg_unit(k, redop, ranks);

    return room < k->exact ? (unsigned)room : k->exact;
}

double bench_value(unsigned dtype, unsigned redop, int ranks, int rank, uint32_t call, uint64_t at)
{
    const struct kind *k = kind_of(dtype);

    switch (redop) {
    case REDOP_PROD:
        return factor(ranks, rank, call, at);
    case REDOP_MAX:
    case REDOP_MIN:
        return mixed(at, call, (uint32_t)rank + 1) % (k->exact + 1);
    default:
        return share(room_of(k, redop, ranks), ranks, rank, call, at) * avg_unit(k, redop, ranks);
    }
}

double bench_value_reduced(unsigned dtype, unsigned redop, int ranks, uint32_t call, uint64_t at)
{
    double all = bench_value(dtype, redop, ranks, 0, call, at);

    for (int r = 1; r < ranks; r++) {
        double v = bench_value(dtype, redop, ranks, r, call, at);

        if (redop == REDOP_PROD)
            all *= v;
        else if (redop == REDOP_MAX)
            all = v > all ? v : all;
        else if (redop == REDOP_MIN)
            all = v < all ? v : all;
        else
            all += v;
    }
    if (redop != REDOP_AVG)
        return all;
    return kind_of(dtype)->exponent ? all / ranks : floor(all / ranks);
}

double bench_value_tolerance(unsigned dtype, unsigned redop, int ranks, double expected)
{
    const struct kind *k = kind_of(dtype);

    if (redop != REDOP_AVG || !k->exponent || (ranks & (ranks - 1)) == 0)
        return 0;
    /* 1/n is off by half a unit, and so is each of the n products and n - 1 sums. */
    return (ranks + 2) * fabs(expected) * ldexp(1, -k->mantissa);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

/* Sign, exponent and mantissa of a small float; normal numbers and zero are all that we need. */
static uint32_t small_float(const struct kind *k, double value)
{
    int exponent, bias = (1 << (k->exponent - 1)) - 1;
    double m;

    if (value == 0)
        return 0;
    m = frexp(fabs(value), &exponent); /* 0.5 <= m < 1 */
    return (value < 0 ? 1u << (k->exponent + k->mantissa) : 0) |
           (uint32_t)(exponent - 1 + bias) << k->mantissa |
           (uint32_t)ldexp(m * 2 - 1, k->mantissa);
}

static double from_small_float(const struct kind *k, uint32_t bits)
{
    uint32_t mantissa = bits & ((1u << k->mantissa) - 1);
    uint32_t exponent = bits >> k->mantissa & ((1u << k->exponent) - 1);
    int bias = (1 << (k->exponent - 1)) - 1;
    double sign = bits >> (k->exponent + k->mantissa) & 1 ? -1 : 1;
    bool e4m3 = k->exponent == 4; /* has no infinity: only all ones is no number */

    if (exponent == (1u << k->exponent) - 1 && (!e4m3 || mantissa == 7))
        return mantissa ? (double)NAN : sign * (double)INFINITY;
    if (exponent == 0)
        return sign * ldexp(mantissa, 1 - bias - k->mantissa);
    return sign * ldexp(1 + ldexp(mantissa, -k->mantissa), (int)exponent - bias);
}

void bench_encode(unsigned dtype, double value, void *to)
{
    int64_t whole = dtype_bytes(dtype) && !kind_of(dtype)->exponent ? (int64_t)value : 0;
    uint32_t bits;
    float f = (float)value;

    switch (dtype) {
    case DTYPE_FLOAT64:
        memcpy(to, &value, sizeof(value));
        break;
    case DTYPE_FLOAT32:
        memcpy(to, &f, sizeof(f));
        break;
    case DTYPE_FLOAT16:
    case DTYPE_BFLOAT16:
    case DTYPE_FLOAT8E4M3:
    case DTYPE_FLOAT8E5M2:
        bits = small_float(kind_of(dtype), value);
        memcpy(to, &bits, dtype_bytes(dtype)); /* little-endian, as the GPU */
        break;
    default:
        memcpy(to, &whole, dtype_bytes(dtype));
    }
}

double bench_decode(unsigned dtype, const void *from)
{
    const struct kind *k = kind_of(dtype);
    uint64_t bits = 0;
    float f;
    double d;

    memcpy(&bits, from, dtype_bytes(dtype));
    switch (dtype) {
    case DTYPE_FLOAT64:
        memcpy(&d, from, sizeof(d));
        return d;
    case DTYPE_FLOAT32:
        memcpy(&f, from, sizeof(f));
        return (double)f;
    case DTYPE_INT8:
        return (int8_t)bits;
    case DTYPE_INT32:
        return (int32_t)bits;
    case DTYPE_INT64:
        return (double)(int64_t)bits;
    default:
        return k->exponent ? from_small_float(k, (uint32_t)bits) : (double)bits;
    }
}

bool bench_exact(unsigned dtype, double value)
{
    const struct kind *k = kind_of(dtype);
    unsigned char bytes[8];

    if (fabs(value) > k->largest)
        return false;
    bench_encode(dtype, value, bytes);
    return bench_decode(dtype, bytes) == value;
}

/* ---- buffers --------------------------------------------------------------------------------- */

void bench_fill(void *to, unsigned dtype, unsigned redop, int ranks, int rank, uint32_t call,
                uint64_t at, uint64_t count, void *tile)
{
    size_t size = dtype_bytes(dtype);
    uint64_t phase = at % BENCH_PERIOD, most = count < BENCH_PERIOD ? count : BENCH_PERIOD;
    char *out = to;

    /* One period of values, then copies of it; a short buffer needs only its own part. */
    for (uint64_t i = 0; i < most; i++) {
        uint64_t place = (phase + i) % BENCH_PERIOD;
        double v = rank < 0 ? bench_value_reduced(dtype, redop, ranks, call, place)
                            : bench_value(dtype, redop, ranks, rank, call, place);

        bench_encode(dtype, v, (char *)tile + i * size);
    }
    for (uint64_t done = 0; done < count; done += most) {
        uint64_t n = count - done < most ? count - done : most;

        memcpy(out + done * size, tile, n * size);
    }
}
