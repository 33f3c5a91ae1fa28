/* Equations of motion: solved, constrained, folded onto leading joints. */

#include "linear_algebra.h"

/* solved(A, b) */
static PyObject *solved(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    if (!has_count(count, 2)) return NULL;
    PyArrayObject *given, *right = (PyArrayObject *)args[1];
    if (!PyArray_Check(args[1]) || PyArray_TYPE(right) != NPY_DOUBLE || !PyArray_ISBEHAVED_RO(right) ||
        PyArray_NDIM(right) < 1 || PyArray_NDIM(right) > 2)
        return PyErr_Format(PyExc_TypeError, "expected a float64 vector or matrix, got %R", args[1]);
    npy_intp n = PyArray_DIM(right, 0), m = PyArray_NDIM(right) == 2 ? PyArray_DIM(right, 1) : 1;
    if (!(given = matrix(args[0], n))) return NULL;
    if (PyArray_DIM(given, 1) != n) return PyErr_Format(PyExc_TypeError, "expected a square matrix");
    PyObject *result = PyArray_NewCopy((PyArrayObject *)args[1], NPY_CORDER);
    PyObject *factors = PyArray_NewCopy(given, NPY_CORDER);
    if (!result || !factors ||
        !eliminate(PyArray_DATA((PyArrayObject *)factors), n, PyArray_DATA((PyArrayObject *)result), m))
        Py_CLEAR(result);
    Py_XDECREF(factors);
    return result;
}

/* solved_part(A, b, part) */
static PyObject *solved_part(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    double *b, *out;
    const npy_bool *part;
    PyArrayObject *A;
    if (!has_count(count, 3)) return NULL;
    npy_intp n = size_of(args[1]), m = 0;
    if (!(b = numbers(args[1], n)) || !(A = square(args[0], n)) || !(part = mask_of(args[2], n))) return NULL;
    PyObject *result = new_vector(n, &out);
    double *x = PyMem_Malloc((n + n * n) * sizeof(double) + 1);
    npy_intp *rows = PyMem_Malloc(n * sizeof(npy_intp) + 1);
    if (!result || !x || !rows) PyErr_NoMemory();
    else {
        for (npy_intp i = 0; i < n; i++)
            if (part[i]) rows[m] = i, x[m++] = b[i];
        if (solve_rows(A, rows, m, x + n, x)) {
            for (npy_intp i = 0; i < n; i++) out[i] = 0;
            for (npy_intp i = 0; i < m; i++) out[rows[i]] = x[i];
        }
    }
    PyMem_Free(x);
    PyMem_Free(rows);
    if (PyErr_Occurred()) Py_CLEAR(result);
    return result;
}

/* constrained(A, J, force, acceleration) */
static PyObject *constrained(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    double *force, *acceleration, *out;
    PyArrayObject *A, *J;
    if (!has_count(count, 4)) return NULL;
    npy_intp n = size_of(args[2]), m = size_of(args[3]), size = n + m;
    if (!(force = numbers(args[2], n)) || !(acceleration = numbers(args[3], m)) || !(A = square(args[0], n)) ||
        !(J = matrix(args[1], m)))
        return NULL;
    if (PyArray_DIM(J, 1) != n) return PyErr_Format(PyExc_TypeError, "expected %zd columns", (Py_ssize_t)n);
    PyObject *result = new_vector(n, &out);
    double *K = PyMem_Calloc(size * size + size + 1, sizeof(double));
    if (!result || !K) PyErr_NoMemory();
    else {
        double *x = K + size * size;
        for (npy_intp i = 0; i < n; i++) {
            for (npy_intp j = 0; j < n; j++) K[i * size + j] = ENTRY(A, i, j);
            for (npy_intp k = 0; k < m; k++) K[i * size + n + k] = K[(n + k) * size + i] = ENTRY(J, k, i);
            x[i] = force[i];
        }
        for (npy_intp k = 0; k < m; k++) x[n + k] = acceleration[k];
        if (!(fabs(eliminated(K, size, x, 1)) > 0))
            PyErr_SetString(PyExc_ZeroDivisionError, "the matrix is singular");
        for (npy_intp i = 0; i < n; i++) out[i] = x[i];
    }
    PyMem_Free(K);
    if (PyErr_Occurred()) Py_CLEAR(result);
    return result;
}

/* complete(a, unknown, rows, E, bias, friction) */
static PyObject *complete(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    double *a, *h[2];
    if (!has_count(count, 6)) return NULL;
    npy_intp n = size_of(args[0]), size = size_of(args[4]), m, many, *unknown, *rows;
    PyArrayObject *E;
    if (!(a = numbers(args[0], n)) || !is_writable(args[0]) || !vectors(args + 4, 2, size, h) ||
        !(E = matrix(args[3], size)))
        return NULL;
    if (PyArray_DIM(E, 1) != n) return PyErr_Format(PyExc_TypeError, "expected equations of %zd joints", (Py_ssize_t)n);
    if (!(unknown = indices(args[1], n, &m)) || !(rows = indices(args[2], size, &many))) return NULL;
    if (many != m) return PyErr_Format(PyExc_TypeError, "expected as many rows as unknowns");
    double *block = PyMem_Malloc(sizeof(double) * (m + 1) * (m + 1)), *x = block + m * m;
    if (!block) return PyErr_NoMemory();
    for (npy_intp i = 0; i < m; i++) a[unknown[i]] = 0;
    for (npy_intp i = 0; i < m; i++) {
        x[i] = -h[0][rows[i]] - h[1][rows[i]];
        for (npy_intp j = 0; j < n; j++) x[i] -= ENTRY(E, rows[i], j) * a[j];
        for (npy_intp j = 0; j < m; j++) block[i * m + j] = ENTRY(E, rows[i], unknown[j]);
    }
    int is_solved = eliminate(block, m, x, 1);
    for (npy_intp i = 0; i < m && is_solved; i++) a[unknown[i]] = x[i];
    PyMem_Free(block);
    if (!is_solved) return NULL;
    Py_RETURN_NONE;
}

/* release(force, J, rows) */
static PyObject *release(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    double *force;
    if (!has_count(count, 3)) return NULL;
    npy_intp n = size_of(args[0]), m, *rows;
    PyArrayObject *J;
    if (!(force = numbers(args[0], n)) || !is_writable(args[0]) || !(J = matrix(args[1], size_of(args[2]))))
        return NULL;
    if (PyArray_DIM(J, 1) != n) return PyErr_Format(PyExc_TypeError, "expected a constraint of %zd joints", (Py_ssize_t)n);
    if (!(rows = indices(args[2], n, &m))) return NULL;
    double *block = PyMem_Malloc(sizeof(double) * (m + 1) * (m + 1)), *x = block + m * m;
    if (!block) return PyErr_NoMemory();
    for (npy_intp i = 0; i < m; i++) {
        x[i] = force[rows[i]];
        for (npy_intp j = 0; j < m; j++) block[i * m + j] = ENTRY(J, j, rows[i]);
    }
    int is_solved = eliminate(block, m, x, 1);
    if (is_solved) add_transposed(J, x, -1.0, force);
    for (npy_intp i = 0; i < m && is_solved; i++) force[rows[i]] = 0;
    PyMem_Free(block);
    if (!is_solved) return NULL;
    Py_RETURN_NONE;
}

/* unconstrained(force, J) */
static PyObject *unconstrained(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    double *force, *out;
    if (!has_count(count, 2)) return NULL;
    npy_intp n = size_of(args[0]), m = n > 0 ? size_of(args[1]) / n : 0;
    PyArrayObject *J;
    if (!(force = numbers(args[0], n)) || !(J = matrix(args[1], m))) return NULL;
    if (PyArray_DIM(J, 1) != n) return PyErr_Format(PyExc_TypeError, "expected a constraint of %zd joints", (Py_ssize_t)n);
    double *block = PyMem_Malloc(sizeof(double) * (m + 1) * (m + 1)), *x = block + m * m;
    if (!block) return PyErr_NoMemory();
    for (npy_intp i = 0; i < m; i++) {
        x[i] = 0;
        for (npy_intp k = 0; k < n; k++) x[i] += ENTRY(J, i, k) * force[k];
        for (npy_intp j = 0; j < m; j++) {
            block[i * m + j] = 0;
            for (npy_intp k = 0; k < n; k++) block[i * m + j] += ENTRY(J, i, k) * ENTRY(J, j, k);
        }
    }
    PyObject *result = eliminate(block, m, x, 1) ? new_vector(n, &out) : NULL;
    if (result) {
        memcpy(out, force, sizeof(double) * n);
        add_transposed(J, x, -1.0, out);
    }
    PyMem_Free(block);
    return result;
}

/* unfolded(leaders, multipliers, x, offset) */
static PyObject *unfolded(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    double *factors[2], *x, *out;
    if (!has_count(count, 4)) return NULL;
    npy_intp n = size_of(args[2]), m = size_of(args[1]), many, *leaders;
    PyObject *given[2] = {args[1], args[3]};
    if (!vectors(given, 2, m, factors) || !(x = numbers(args[2], n)) || !(leaders = indices(args[0], n, &many)))
        return NULL;
    if (many != m) return PyErr_Format(PyExc_TypeError, "expected %zd leaders", (Py_ssize_t)m);
    PyObject *result = new_vector(m, &out);
    for (npy_intp i = 0; i < m && result; i++) out[i] = factors[0][i] * x[leaders[i]] + factors[1][i];
    return result;
}

/* folded(leaders, multipliers, M, nle, g, A, bias) */
static PyObject *folded(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    double *x[3], *M, *A, *bias, *out;
    if (!has_count(count, 7)) return NULL;
    npy_intp m = size_of(args[1]), n = size_of(args[6]), many, *leaders;
    PyObject *given[3] = {args[1], args[3], args[4]};
    if (!vectors(given, 3, m, x) || !(M = symmetric(args[2], m)) || !(A = symmetric(args[5], n)) ||
        !(bias = numbers(args[6], n)) || !is_writable(args[5]) || !is_writable(args[6]) ||
        !(leaders = indices(args[0], n, &many)))
        return NULL;
    if (many != m) return PyErr_Format(PyExc_TypeError, "expected %zd leaders", (Py_ssize_t)m);
    PyObject *gravity = new_vector(n, &out);
    if (!gravity) return NULL;
    for (npy_intp i = 0; i < n * n; i++) A[i] = 0;
    for (npy_intp i = 0; i < n; i++) bias[i] = out[i] = 0;
    for (npy_intp i = 0; i < m; i++) {
        double factor = x[0][i];
        bias[leaders[i]] += factor * x[1][i];
        out[leaders[i]] += factor * x[2][i];
        for (npy_intp j = 0; j < m; j++) A[leaders[i] * n + leaders[j]] += factor * M[i * m + j] * x[0][j];
    }
    return gravity;
}

PyMethodDef equation_kernels[] = {
    KERNEL(solved),
    KERNEL(solved_part),
    KERNEL(constrained),
    KERNEL(complete),
    KERNEL(release),
    KERNEL(unconstrained),
    KERNEL(unfolded),
    KERNEL(folded),
    END,
};
