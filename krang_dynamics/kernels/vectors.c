/* Checks and sums of vectors, and generated functions of them. */

#include "kernels.h"

#define MOST_INPUTS 3 /* of a generated function: q, v, a */

/* is_finite(x) */
static PyObject *is_finite(PyObject *self, PyObject *x)
{
    if (PyArray_CheckExact(x) && PyArray_TYPE((PyArrayObject *)x) == NPY_DOUBLE && PyArray_ISCARRAY_RO((PyArrayObject *)x))
        return PyBool_FromLong(all_finite(PyArray_DATA((PyArrayObject *)x), PyArray_SIZE((PyArrayObject *)x)));
    /* As it is, or copied to consecutive numbers. */
    PyArrayObject *a = (PyArrayObject *)PyArray_FROM_OTF(x, NPY_DOUBLE, NPY_ARRAY_ALIGNED | NPY_ARRAY_NOTSWAPPED);
    if (a && !PyArray_IS_C_CONTIGUOUS(a) && !PyArray_IS_F_CONTIGUOUS(a))
        Py_SETREF(a, (PyArrayObject *)PyArray_NewCopy(a, NPY_CORDER));
    if (!a) return NULL;
    int is_finite = all_finite(PyArray_DATA(a), PyArray_SIZE(a));
    Py_DECREF(a);
    return PyBool_FromLong(is_finite);
}

/* are_vectors(n, *values) */
static PyObject *are_vectors(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    Py_ssize_t n = count ? PyLong_AsSsize_t(args[0]) : -1;
    if (n < 0) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "expected a number of joints");
        return NULL;
    }
    for (Py_ssize_t i = 1; i < count; i++) {
        PyArrayObject *a = (PyArrayObject *)args[i];
        if (!PyArray_CheckExact(args[i]) || PyArray_TYPE(a) != NPY_DOUBLE || !PyArray_ISCARRAY_RO(a) ||
            PyArray_NDIM(a) != 1 || PyArray_DIM(a, 0) != n || !all_finite(PyArray_DATA(a), n))
            Py_RETURN_FALSE;
    }
    Py_RETURN_TRUE;
}

/* is_within(x, low, high) */
static PyObject *is_within(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    double *x[3];
    npy_intp n = count ? size_of(args[0]) : 0;
    if (!has_count(count, 3) || !vectors(args, 3, n, x)) return NULL;
    for (npy_intp i = 0; i < n; i++)
        if (!(x[0][i] >= x[1][i] && x[0][i] <= x[2][i])) Py_RETURN_FALSE;
    Py_RETURN_TRUE;
}

/* is_near(x, y, tolerance) */
static PyObject *is_near(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    double *x[3];
    npy_intp n = count ? size_of(args[0]) : 0;
    if (!has_count(count, 3) || !vectors(args, 3, n, x)) return NULL;
    for (npy_intp i = 0; i < n; i++)
        if (!(fabs(x[0][i] - x[1][i]) <= x[2][i])) Py_RETURN_FALSE;
    Py_RETURN_TRUE;
}

/* between(x, a, b) */
static PyObject *between(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    double *x[3], *out;
    npy_intp n = count ? size_of(args[0]) : 0;
    if (!has_count(count, 3) || !vectors(args, 3, n, x)) return NULL;
    PyObject *result = new_vector(n, &out);
    if (!result) return NULL;
    for (npy_intp i = 0; i < n; i++) {
        int is_first = x[1][i] < x[2][i];
        double low = x[is_first ? 1 : 2][i], high = x[is_first ? 2 : 1][i];
        out[i] = x[0][i] < low ? low : x[0][i] > high ? high : x[0][i];
    }
    return result;
}

/* scaled(factor, x) */
static PyObject *scaled(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    double *factors = NULL, *x, *out, factor = 0;
    if (!has_count(count, 2)) return NULL;
    npy_intp n = size_of(args[1]);
    if (!(x = numbers(args[1], n))) return NULL;
    if (PyArray_Check(args[0]) && !(factors = numbers(args[0], n))) return NULL;
    if (!factors && (factor = PyFloat_AsDouble(args[0])) == -1.0 && PyErr_Occurred()) return NULL;
    PyObject *result = new_vector(n, &out);
    for (npy_intp i = 0; i < n && result; i++) out[i] = (factors ? factors[i] : factor) * x[i];
    return result;
}

/* moved(x, rate, h) */
static PyObject *moved(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    double *x[2], *out;
    npy_intp n = count ? size_of(args[0]) : 0;
    if (!has_count(count, 3) || !vectors(args, 2, n, x)) return NULL;
    double h = PyFloat_AsDouble(args[2]);
    if (PyErr_Occurred()) return NULL;
    PyObject *result = new_vector(n, &out);
    if (!result) return NULL;
    for (npy_intp i = 0; i < n; i++) out[i] = x[0][i] + h * x[1][i];
    return result;
}

/* add(total, x) */
static PyObject *add(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    if (!has_count(count, 2)) return NULL;
    npy_intp n = size_of(args[0]);
    double *total = numbers(args[0], n);
    PyArrayObject *x = (PyArrayObject *)args[1];
    if (!total) return NULL;
    if (!PyArray_ISWRITEABLE((PyArrayObject *)args[0]) || !PyArray_CheckExact(args[1]) ||
        PyArray_TYPE(x) != NPY_DOUBLE || !PyArray_ISCARRAY_RO(x) || PyArray_NDIM(x) != 1 || PyArray_DIM(x, 0) != n)
        Py_RETURN_FALSE;
    for (npy_intp i = 0; i < n; i++) total[i] += ((double *)PyArray_DATA(x))[i];
    Py_RETURN_TRUE;
}

/* evaluated(address, n, *inputs) */
static PyObject *evaluated(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    const double *inputs[MOST_INPUTS];
    double *out;
    if (count < 2 || count > 2 + MOST_INPUTS) return PyErr_Format(PyExc_TypeError, "wrong number of arguments");
    void *address = PyLong_AsVoidPtr(args[0]);
    PyObject *are_valid = address ? are_vectors(self, args + 1, count - 1) : NULL;
    if (!are_valid) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "the address is 0");
        return NULL;
    }
    Py_DECREF(are_valid);
    if (are_valid != Py_True) Py_RETURN_NONE;
    for (Py_ssize_t i = 2; i < count; i++) inputs[i - 2] = PyArray_DATA((PyArrayObject *)args[i]);
    PyObject *result = new_vector(PyLong_AsSsize_t(args[1]), &out);
    if (result) ((void (*)(const double *const *, double *))address)(inputs, out);
    return result;
}

PyMethodDef vector_kernels[] = {
    {"is_finite", is_finite, METH_O, NULL},
    KERNEL(are_vectors),
    KERNEL(is_within),
    KERNEL(is_near),
    KERNEL(between),
    KERNEL(scaled),
    KERNEL(moved),
    KERNEL(add),
    KERNEL(evaluated),
    END,
};
