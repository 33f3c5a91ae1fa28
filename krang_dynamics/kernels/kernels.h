/* What the kernels have in common: their arguments.

   kernels.pyi has the purpose, units and arguments of each kernel; test/test_kernels.py compares each with
   numpy. An array must be contiguous, of type float64 and of the expected size; anything else is a TypeError.
   Comparisons are written so that NaN never passes a check. Built without fast-math and without fused
   multiply-adds, so that a replay gives the same bits on every machine. */

#pragma once

#define PY_SSIZE_T_CLEAN
#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL krang_dynamics_kernels
#ifndef IMPORTS_NUMPY /* module.c alone */
#define NO_IMPORT_ARRAY
#endif
#include <Python.h>
#include <math.h>
#include <numpy/arrayobject.h>

#define PI 3.14159265358979323846
#define ENTRY(a, i, j) (*(double *)PyArray_GETPTR2(a, i, j))

#define CROSS(u, w, out) \
    (out)[0] = (u)[1] * (w)[2] - (u)[2] * (w)[1], (out)[1] = (u)[2] * (w)[0] - (u)[0] * (w)[2], \
    (out)[2] = (u)[0] * (w)[1] - (u)[1] * (w)[0]

/* The kernels of a file; module.c adds them to the module. */
#define KERNEL(name) {#name, (PyCFunction)(void (*)(void))name, METH_FASTCALL, NULL}
#define END {NULL, NULL, 0, NULL}
extern PyMethodDef vector_kernels[], state_kernels[], equation_kernels[], control_kernels[], stop_kernels[],
    contact_kernels[], rigid_body_kernels[];

/* The numbers of a C-contiguous float64 array of this size (-1: any); NULL and a TypeError otherwise. */
static inline double *numbers(PyObject *x, npy_intp size)
{
    if (PyArray_CheckExact(x)) {
        PyArrayObject *a = (PyArrayObject *)x;
        if (PyArray_TYPE(a) == NPY_DOUBLE && PyArray_ISCARRAY_RO(a) && (size < 0 || PyArray_SIZE(a) == size))
            return PyArray_DATA(a);
    }
    PyErr_Format(PyExc_TypeError, "expected a contiguous float64 array of %zd numbers, got %R",
                 (Py_ssize_t)size, x);
    return NULL;
}

/* Whether an array may be changed; a ValueError otherwise, as numpy has it. */
static inline int is_writable(PyObject *x)
{
    if (PyArray_ISWRITEABLE((PyArrayObject *)x)) return 1;
    PyErr_SetString(PyExc_ValueError, "assignment destination is read-only");
    return 0;
}

static inline npy_intp size_of(PyObject *x)
{
    return PyArray_Check(x) ? PyArray_SIZE((PyArrayObject *)x) : -1;
}

static inline int has_count(Py_ssize_t count, Py_ssize_t expected)
{
    if (count == expected) return 1;
    PyErr_Format(PyExc_TypeError, "expected %zd arguments, got %zd", expected, count);
    return 0;
}

/* A float64 matrix in any order of its numbers; NULL and a TypeError otherwise. */
static inline PyArrayObject *matrix(PyObject *x, npy_intp rows)
{
    PyArrayObject *a = (PyArrayObject *)x;
    if (PyArray_Check(x) && PyArray_TYPE(a) == NPY_DOUBLE && PyArray_ISBEHAVED_RO(a) && PyArray_NDIM(a) == 2 &&
        PyArray_DIM(a, 0) == rows)
        return a;
    PyErr_Format(PyExc_TypeError, "expected a float64 matrix of %zd rows, got %R", (Py_ssize_t)rows, x);
    return NULL;
}

static inline PyArrayObject *square(PyObject *x, npy_intp n)
{
    PyArrayObject *a = matrix(x, n);
    if (!a || PyArray_DIM(a, 1) == n) return a;
    PyErr_Format(PyExc_TypeError, "expected a square matrix, got %R", x);
    return NULL;
}

/* Reads `count` arrays of n numbers each; 0 and a TypeError if one is not so. */
static inline int vectors(PyObject *const *args, int count, npy_intp n, double **out)
{
    for (int i = 0; i < count; i++)
        if (!(out[i] = numbers(args[i], n))) return 0;
    return 1;
}

static inline PyObject *new_vector(npy_intp n, double **data)
{
    PyObject *result = PyArray_SimpleNew(1, &n, NPY_DOUBLE);
    if (result) *data = PyArray_DATA((PyArrayObject *)result);
    return result;
}

/* The truth values of a mask of this size; NULL and a TypeError otherwise. */
static inline const npy_bool *mask_of(PyObject *x, npy_intp n)
{
    PyArrayObject *mask = (PyArrayObject *)x;
    if (PyArray_CheckExact(x) && PyArray_TYPE(mask) == NPY_BOOL && PyArray_ISCARRAY_RO(mask) &&
        PyArray_SIZE(mask) == n)
        return PyArray_DATA(mask);
    PyErr_Format(PyExc_TypeError, "expected a mask of %zd joints, got %R", (Py_ssize_t)n, x);
    return NULL;
}

static inline int all_finite(const double *x, npy_intp n)
{
    for (npy_intp i = 0; i < n; i++)
        if (!isfinite(x[i])) return 0;
    return 1;
}

/* A symmetric matrix of n x n numbers, whose rows and columns may be exchanged; NULL and a TypeError otherwise. */
static inline double *symmetric(PyObject *x, npy_intp n)
{
    PyArrayObject *a = (PyArrayObject *)x;
    if (PyArray_Check(x) && PyArray_TYPE(a) == NPY_DOUBLE && PyArray_SIZE(a) == n * n &&
        (PyArray_ISCARRAY_RO(a) || PyArray_ISFARRAY_RO(a)))
        return PyArray_DATA(a);
    PyErr_Format(PyExc_TypeError, "expected a contiguous matrix of %zd rows, got %R", (Py_ssize_t)n, x);
    return NULL;
}

/* Indices below n, and how many; NULL and an error otherwise. */
static inline npy_intp *indices(PyObject *x, npy_intp n, npy_intp *count)
{
    PyArrayObject *a = (PyArrayObject *)x;
    if (!PyArray_CheckExact(x) || PyArray_TYPE(a) != NPY_INTP || !PyArray_ISCARRAY_RO(a)) {
        PyErr_Format(PyExc_TypeError, "expected indices, got %R", x);
        return NULL;
    }
    npy_intp *rows = PyArray_DATA(a);
    *count = PyArray_SIZE(a);
    for (npy_intp i = 0; i < *count; i++)
        if (rows[i] < 0 || rows[i] >= n) {
            PyErr_Format(PyExc_IndexError, "row %zd of %zd", (Py_ssize_t)rows[i], (Py_ssize_t)n);
            return NULL;
        }
    return rows;
}
