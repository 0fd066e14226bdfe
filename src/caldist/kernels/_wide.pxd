# C for sums.py: the parts of a double, and functions that are compiled for wider registers, too.
#
# A function that is declared here has two versions, for processors with AVX2 and for all, of which
# the loader of the program takes one. GCC and the C library of GNU can do that; with others there is
# the one version for all. The names are those that Cython makes of functions in sums.py. If it made
# others, the functions would be slower, and nothing else.

cdef extern from * nogil:
    """
    #include <stdint.h>
    #include <string.h>

    #if defined(__x86_64__) && defined(__GLIBC__) && __GNUC__ >= 12 && !defined(__clang__)
    #define WIDE(kind, name, arguments) \\
        static kind __pyx_f_7caldist_9_compiled_4sums_##name arguments \\
            __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
    typedef Py_ssize_t size;
    WIDE(PY_LONG_LONG, _bytes, (unsigned char const *, size, size, size, double *));
    WIDE(PY_LONG_LONG, _words, (int const *, size, size, size, double *));
    WIDE(PY_LONG_LONG, _integers, (PY_LONG_LONG const *, size, size, size, double *));
    WIDE(PY_LONG_LONG, _single_labels, (float const *, size, size, size, double *));
    WIDE(PY_LONG_LONG, _double_labels, (double const *, size, size, size, double *));
    WIDE(PY_LONG_LONG, _singles, (float const *, size, size, size, double, double *));
    WIDE(PY_LONG_LONG, _doubles, (double const *, size, size, size, double, double *));
    WIDE(void, _weigh, (double *, double, size, size, double *, double *));
    WIDE(void, _add_all, (double *, double *, size, size, double *));
    WIDE(void, _squares, (double *, double *, size, double *));
    WIDE(PY_LONG_LONG, _likelihoods, (double *, double *, size, double *, double *));
    WIDE(void, _losses, (size, double *, double *));
    WIDE(void, _uniform_places, (double *, size, double, int *));
    WIDE(void, _step, (double *, size, double, double *));
    WIDE(void, _spread, (double *, size, size, double, double, double *, double *));
    WIDE(PY_LONG_LONG, _cut, (double *, double *, size, double *));
    WIDE(void, _scatter, (int *, size, size, double *, double *));
    #undef WIDE
    #endif

    /* x = m 2^k with m from 0.7071 on: less the bits of that number, x has k in its exponent. */
    static CYTHON_INLINE uint64_t caldist_shift(double x) {
        uint64_t bits;
        memcpy(&bits, &x, 8);
        return bits - 0x3fe6a09e00000000u + 0x3ff0000000000000u;
    }

    static CYTHON_INLINE double caldist_exponent(double x) {
        uint64_t bits = caldist_shift(x) >> 52 | 0x4330000000000000u;
        double shifted;
        memcpy(&shifted, &bits, 8);
        return shifted - 4503599627371519.0; /* 2^52 + 1023 */
    }

    static CYTHON_INLINE double caldist_mantissa(double x) {
        uint64_t bits = (caldist_shift(x) & 0x000fffffffffffffu) + 0x3fe6a09e00000000u;
        double m;
        memcpy(&m, &bits, 8);
        return m;
    }
    """
    double exponent "caldist_exponent" (double x) noexcept
    double mantissa "caldist_mantissa" (double x) noexcept
