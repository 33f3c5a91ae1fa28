/* Systems of equations of a few joints. */

#pragma once

#include "kernels.h"

/* Gaussian elimination, which overwrites A (n, n) and b (n, m): b becomes x of A x = b. Returns the first pivot
   that is 0 or NaN, which ends the elimination, or 1. */
static inline double eliminated(double *A, npy_intp n, double *x, npy_intp m)
{
    for (npy_intp k = 0; k < n; k++) { /* the largest number of a column is the pivot */
        npy_intp pivot = k;
        for (npy_intp i = k + 1; i < n; i++)
            if (fabs(A[i * n + k]) > fabs(A[pivot * n + k])) pivot = i;
        if (!(fabs(A[pivot * n + k]) > 0)) return A[pivot * n + k];
        for (npy_intp j = 0; j < n && pivot != k; j++) {
            double swapped = A[k * n + j];
            A[k * n + j] = A[pivot * n + j];
            A[pivot * n + j] = swapped;
        }
        for (npy_intp j = 0; j < m && pivot != k; j++) {
            double swapped = x[k * m + j];
            x[k * m + j] = x[pivot * m + j];
            x[pivot * m + j] = swapped;
        }
        for (npy_intp i = k + 1; i < n; i++) {
            double factor = A[i * n + k] / A[k * n + k];
            for (npy_intp j = k + 1; j < n; j++) A[i * n + j] -= factor * A[k * n + j];
            for (npy_intp j = 0; j < m; j++) x[i * m + j] -= factor * x[k * m + j];
        }
    }
    for (npy_intp k = n - 1; k >= 0; k--) {
        for (npy_intp i = k + 1; i < n; i++)
            for (npy_intp j = 0; j < m; j++) x[k * m + j] -= A[k * n + i] * x[i * m + j];
        for (npy_intp j = 0; j < m; j++) x[k * m + j] /= A[k * n + k];
    }
    return 1;
}

/* The same; 0 and an error if A is singular or has NaN. */
static inline int eliminate(double *A, npy_intp n, double *x, npy_intp m)
{
    if (fabs(eliminated(A, n, x, m)) > 0) return 1;
    PyErr_SetString(PyExc_ZeroDivisionError, "the matrix is singular");
    return 0;
}

/* Solves A_rr x = b_r for the `count` joints `rows`, b_r given in x; factors has room for A_rr. Numbers that
   are NaN stay so. 0 and an error if A_rr is singular. */
static inline int solve_rows(PyArrayObject *A, const npy_intp *rows, npy_intp count, double *factors, double *x)
{
    for (npy_intp i = 0; i < count; i++)
        for (npy_intp j = 0; j < count; j++) factors[i * count + j] = ENTRY(A, rows[i], rows[j]);
    double pivot = eliminated(factors, count, x, 1);
    if (pivot == 0) PyErr_SetString(PyExc_ZeroDivisionError, "the matrix is singular");
    for (npy_intp i = 0; i < count && isnan(pivot); i++) x[i] = NAN;
    return pivot != 0;
}

/* Adds J^T x to `out`. */
static inline void add_transposed(PyArrayObject *J, const double *x, double factor, double *out)
{
    for (npy_intp i = 0; i < PyArray_DIM(J, 0); i++)
        for (npy_intp j = 0; j < PyArray_DIM(J, 1); j++) out[j] += factor * x[i] * ENTRY(J, i, j);
}
