/* Arithmetic of one control step over the joints of a robot, where numpy would need many small calls, and
   of the rigid bodies along a recorded motion.

   kernels.pyi has the purpose, units and arguments of each function; test/test_kernels.py compares each with
   numpy. An array must be contiguous, of type float64 and of the expected size; anything else is a TypeError.
   Comparisons are written so that NaN never passes a check. Built without fast-math and without fused
   multiply-adds, so that a replay gives the same bits on every machine. */

#define PY_SSIZE_T_CLEAN
#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#include <Python.h>
#include <math.h>
#include <numpy/arrayobject.h>

#define PI 3.14159265358979323846
#define CONTROL_POINTS 6 /* of a quintic */
#define MOST_INPUTS 3   /* of a generated function: q, v, a */

/* The numbers of a C-contiguous float64 array of this size (-1: any); NULL and a TypeError otherwise. */
static double *numbers(PyObject *x, npy_intp size)
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

static npy_intp size_of(PyObject *x)
{
    return PyArray_Check(x) ? PyArray_SIZE((PyArrayObject *)x) : -1;
}

static int has_count(Py_ssize_t count, Py_ssize_t expected)
{
    if (count == expected) return 1;
    PyErr_Format(PyExc_TypeError, "expected %zd arguments, got %zd", expected, count);
    return 0;
}

/* A float64 matrix in any order of its numbers; NULL and a TypeError otherwise. */
static PyArrayObject *matrix(PyObject *x, npy_intp rows)
{
    PyArrayObject *a = (PyArrayObject *)x;
    if (PyArray_Check(x) && PyArray_TYPE(a) == NPY_DOUBLE && PyArray_ISBEHAVED_RO(a) && PyArray_NDIM(a) == 2 &&
        PyArray_DIM(a, 0) == rows)
        return a;
    PyErr_Format(PyExc_TypeError, "expected a float64 matrix of %zd rows, got %R", (Py_ssize_t)rows, x);
    return NULL;
}

/* Reads `count` arrays of n numbers each; 0 and a TypeError if one is not so. */
static int vectors(PyObject *const *args, int count, npy_intp n, double **out)
{
    for (int i = 0; i < count; i++)
        if (!(out[i] = numbers(args[i], n))) return 0;
    return 1;
}

static PyObject *new_vector(npy_intp n, double **data)
{
    PyObject *result = PyArray_SimpleNew(1, &n, NPY_DOUBLE);
    if (result) *data = PyArray_DATA((PyArrayObject *)result);
    return result;
}

/* The truth values of a mask of this size; NULL and a TypeError otherwise. */
static const npy_bool *mask_of(PyObject *x, npy_intp n)
{
    PyArrayObject *mask = (PyArrayObject *)x;
    if (PyArray_CheckExact(x) && PyArray_TYPE(mask) == NPY_BOOL && PyArray_ISCARRAY_RO(mask) &&
        PyArray_SIZE(mask) == n)
        return PyArray_DATA(mask);
    PyErr_Format(PyExc_TypeError, "expected a mask of %zd joints, got %R", (Py_ssize_t)n, x);
    return NULL;
}

static int all_finite(const double *x, npy_intp n)
{
    for (npy_intp i = 0; i < n; i++)
        if (!isfinite(x[i])) return 0;
    return 1;
}

/* A symmetric matrix of n x n numbers, whose rows and columns may be exchanged; NULL and a TypeError otherwise. */
static double *symmetric(PyObject *x, npy_intp n)
{
    PyArrayObject *a = (PyArrayObject *)x;
    if (PyArray_Check(x) && PyArray_TYPE(a) == NPY_DOUBLE && PyArray_SIZE(a) == n * n &&
        (PyArray_ISCARRAY_RO(a) || PyArray_ISFARRAY_RO(a)))
        return PyArray_DATA(a);
    PyErr_Format(PyExc_TypeError, "expected a contiguous matrix of %zd rows, got %R", (Py_ssize_t)n, x);
    return NULL;
}

/* Indices below n, and how many; NULL and an error otherwise. */
static npy_intp *indices(PyObject *x, npy_intp n, npy_intp *count)
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

/* Gaussian elimination, which overwrites A (n, n) and b (n, m): b becomes x of A x = b. Returns the first pivot
   that is 0 or NaN, which ends the elimination, or 1. */
static double eliminated(double *A, npy_intp n, double *x, npy_intp m)
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
static int eliminate(double *A, npy_intp n, double *x, npy_intp m)
{
    if (fabs(eliminated(A, n, x, m)) > 0) return 1;
    PyErr_SetString(PyExc_ZeroDivisionError, "the matrix is singular");
    return 0;
}

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

/* joint_state(position, velocity, rows) */
static PyObject *joint_state(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    PyObject *fields[2] = {NULL, NULL}, *state = NULL, *result = NULL;
    npy_intp *rows = NULL, n;
    double *out;
    if (!has_count(count, 3)) return NULL;
    for (int k = 0; k < 2; k++) /* as they are, or converted from any numbers */
        if (!(fields[k] = PyArray_FROM_OTF(args[k], NPY_DOUBLE, NPY_ARRAY_IN_ARRAY))) goto end;
    n = size_of(fields[0]);
    if (PyArray_NDIM((PyArrayObject *)fields[0]) != 1 || PyArray_NDIM((PyArrayObject *)fields[1]) != 1 ||
        size_of(fields[1]) != n) {
        PyErr_SetString(PyExc_ValueError, "positions and velocities must be two vectors of one size");
        goto end;
    }
    if (args[2] != Py_None) {
        PyArrayObject *a = (PyArrayObject *)args[2];
        if (!PyArray_CheckExact(args[2]) || PyArray_TYPE(a) != NPY_INTP || !PyArray_ISCARRAY_RO(a)) {
            PyErr_Format(PyExc_TypeError, "expected indices or None, got %R", args[2]);
            goto end;
        }
        rows = PyArray_DATA(a);
        n = PyArray_SIZE(a);
    }
    if (!(state = new_vector((n *= 2), &out))) goto end;
    n /= 2;
    for (int k = 0; k < 2; k++) {
        double *x = PyArray_DATA((PyArrayObject *)fields[k]);
        npy_intp size = size_of(fields[k]);
        for (npy_intp i = 0; i < n; i++, out++) {
            npy_intp row = rows ? rows[i] : i;
            if (row < 0 || row >= size) {
                PyErr_Format(PyExc_IndexError, "row %zd of %zd numbers", (Py_ssize_t)row, (Py_ssize_t)size);
                goto end;
            }
            *out = x[row];
        }
    }
    result = all_finite(out - 2 * n, 2 * n) ? state : Py_None;
    Py_INCREF(result);
end:
    Py_XDECREF(fields[0]);
    Py_XDECREF(fields[1]);
    Py_XDECREF(state);
    return result;
}

/* consistent(state, last, repeated, drift, dt, bounds) */
static PyObject *consistent(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    double *state, *last, *repeated, *drift, *bounds, *dts = NULL, dt = 0, jumps = 0, drifts = 0;
    int is_frozen = 0;
    if (!has_count(count, 6)) return NULL;
    npy_intp n = size_of(args[2]);
    if (!(state = numbers(args[0], 2 * n)) || !(last = numbers(args[1], 2 * n)) ||
        !(repeated = numbers(args[2], n)) || !(drift = numbers(args[3], n)) || !(bounds = numbers(args[5], 5)))
        return NULL;
    if (!PyArray_Check(args[4])) dt = PyFloat_AsDouble(args[4]);
    else if (!(dts = numbers(args[4], n))) return NULL;
    if (PyErr_Occurred()) return NULL;
    double hold = bounds[0], speed = bounds[1], way = bounds[2], time = bounds[3], noise = bounds[4];
    for (npy_intp i = 0; i < n; i++) {
        if (dts) dt = dts[i];
        double v = fabs(state[n + i]);
        int same = state[i] == last[i] && state[n + i] == last[n + i] && dt >= 0 && dt <= hold;
        repeated[i] = same ? repeated[i] + dt : 0;
        is_frozen |= repeated[i] > hold && v > speed && v * repeated[i] > way;
        double error = state[i] - last[i] - 0.5 * dt * (state[n + i] + last[n + i]);
        double sum = (1.0 - dt / time) * drift[i] + error;
        jumps += error * error;
        drifts += sum * sum;
    }
    if (is_frozen || !(jumps <= noise * noise && drifts <= 4 * noise * noise)) Py_RETURN_FALSE;
    for (npy_intp i = 0; i < n; i++) {
        if (dts) dt = dts[i];
        double error = state[i] - last[i] - 0.5 * dt * (state[n + i] + last[n + i]);
        drift[i] = (1.0 - dt / time) * drift[i] + error;
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

/* quintic(control, s, out) */
static PyObject *quintic(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    double *control, *out;
    if (!has_count(count, 3)) return NULL;
    npy_intp n = size_of(args[2]);
    double s = PyFloat_AsDouble(args[1]), r = 1.0 - s;
    if (PyErr_Occurred() || !(control = numbers(args[0], CONTROL_POINTS * n)) || !(out = numbers(args[2], n)))
        return NULL;
    double ss = s * s, rr = r * r;
    double basis[CONTROL_POINTS] = {r * rr * rr,      5 * s * rr * rr, 10 * ss * r * rr,
                                    10 * s * ss * rr, 5 * ss * ss * r, s * ss * ss};
    for (npy_intp i = 0; i < n; i++) {
        double sum = 0;
        for (int k = 0; k < CONTROL_POINTS; k++) sum += basis[k] * control[k * n + i];
        out[i] = sum;
    }
    Py_RETURN_NONE;
}

/* feedback(q_d, v_d, a_d, q, v, kp, kd, continuous, followed) */
static PyObject *feedback(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    double *x[7], *followed, *out;
    npy_intp n = count ? size_of(args[0]) : 0;
    if (!has_count(count, 9) || !vectors(args, 7, n, x) || !(followed = numbers(args[8], n))) return NULL;
    const npy_bool *continuous = mask_of(args[7], n);
    if (!continuous) return NULL;
    PyObject *result = new_vector(n, &out);
    if (!result) return NULL;
    for (npy_intp i = 0; i < n; i++) {
        double error = x[0][i] - x[3][i];
        if (continuous[i] && !(fabs(error) < PI)) error -= 2 * PI * floor((error + PI) / (2 * PI));
        out[i] = followed[i] * (x[6][i] * (x[1][i] - x[4][i]) + x[5][i] * error + x[2][i]);
    }
    return result;
}

/* forces(A, a, bias, effort, gravity, followed) */
static PyObject *forces(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    double *x[5], *A, *out;
    if (!has_count(count, 6)) return NULL;
    npy_intp n = size_of(args[1]);
    if (!(A = symmetric(args[0], n)) || !vectors(args + 1, 5, n, x)) return NULL;
    double *a = x[0], *bias = x[1], *effort = x[2], *gravity = x[3], *followed = x[4];
    PyObject *result = new_vector(n, &out);
    if (!result) return NULL;
    for (npy_intp i = 0; i < n; i++) {
        double sum = 0;
        for (npy_intp j = 0; j < n; j++) sum += A[i * n + j] * a[j];
        out[i] = followed[i] * (sum + bias[i] + effort[i] - gravity[i]);
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

/* limited(torque, last, rate, dt, bound) */
static PyObject *limited(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    double *torque, *last, *rate, *bound, *out;
    if (!has_count(count, 5)) return NULL;
    npy_intp n = size_of(args[0]);
    double dt = PyFloat_AsDouble(args[3]);
    if (PyErr_Occurred() || !(torque = numbers(args[0], n)) || !(last = numbers(args[1], n)) ||
        !(rate = numbers(args[2], n)) || !(bound = numbers(args[4], n)))
        return NULL;
    PyObject *command = new_vector(n, &out);
    if (!command) return NULL;
    int is_limited = 0;
    for (npy_intp i = 0; i < n; i++) {
        double wanted = isfinite(torque[i]) ? torque[i] : last[i], step = rate[i] * dt, x = wanted;
        if (!(x >= last[i] - step)) x = last[i] - step;
        if (!(x <= last[i] + step)) x = last[i] + step;
        if (!isfinite(x)) x = last[i]; /* rate or dt is not a number */
        if (!(x >= -bound[i])) x = -bound[i];
        if (!(x <= bound[i])) x = bound[i];
        is_limited |= !(x == wanted);
        out[i] = x;
    }
    PyArray_CLEARFLAGS((PyArrayObject *)command, NPY_ARRAY_WRITEABLE);
    return Py_BuildValue("NO", command, is_limited ? Py_True : Py_False);
}

/* observed(external, last, A, v, bias, friction, applied, dt, gain) */
static PyObject *observed(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    double *x[4], *last, *A, *external, *out;
    if (!has_count(count, 9)) return NULL;
    npy_intp n = size_of(args[0]);
    if (!(external = numbers(args[0], n)) || !(last = numbers(args[1], (n + 2) * n)) ||
        !(A = symmetric(args[2], n)) || !vectors(args + 3, 4, n, x))
        return NULL;
    double *v = x[0], *bias = x[1], *friction = x[2], *applied = x[3];
    double *last_A = last, *last_v = last + n * n, *last_h = last_v + n;
    double dt = PyFloat_AsDouble(args[7]), gain = PyFloat_AsDouble(args[8]);
    if (PyErr_Occurred()) return NULL;
    PyObject *result = new_vector(n, &out);
    if (!result) return NULL;
    for (npy_intp i = 0; i < n; i++) {
        double impulse = 0, h = bias[i] + friction[i];
        for (npy_intp j = 0; j < n; j++)
            impulse += 0.5 * (last_A[i * n + j] + A[i * n + j]) * (v[j] - last_v[j]);
        double rest = 0.5 * (last_h[i] + h) - applied[i] - external[i];
        out[i] = external[i] + (dt >= 0 ? gain * (impulse + dt * rest) : 0);
        last_h[i] = h;
    }
    memcpy(last_A, A, sizeof(double) * n * n);
    memcpy(last_v, v, sizeof(double) * n);
    return result;
}

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

/* friction(v, table, is_smooth) */
static PyObject *friction(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    if (!has_count(count, 3)) return NULL;
    PyArrayObject *v = (PyArrayObject *)args[0];
    int dimensions = PyArray_Check(args[0]) ? PyArray_NDIM(v) : 0, is_smooth = PyObject_IsTrue(args[2]);
    if ((dimensions != 1 && dimensions != 2) || PyArray_TYPE(v) != NPY_DOUBLE || !PyArray_ISBEHAVED_RO(v))
        return PyErr_Format(PyExc_TypeError, "expected velocities as one or two dimensions of float64, got %R", v);
    npy_intp n = PyArray_DIM(v, dimensions - 1), rows = dimensions == 2 ? PyArray_DIM(v, 0) : 1;
    double *table = numbers(args[1], 6 * n);
    if (!table || is_smooth < 0) return NULL;
    PyArrayObject *result = (PyArrayObject *)PyArray_NewLikeArray(v, NPY_KEEPORDER, NULL, 0);
    if (!result) return NULL;
    npy_intp from = dimensions == 2 ? PyArray_STRIDE(v, 0) : 0, to = dimensions == 2 ? PyArray_STRIDE(result, 0) : 0;
    for (npy_intp j = 0; j < n; j++) {
        double viscous = table[j], coulomb = table[n + j], width = table[2 * n + j];
        double stribeck = table[3 * n + j], speed = table[4 * n + j], offset = table[5 * n + j];
        char *in = PyArray_BYTES(v) + j * PyArray_STRIDE(v, dimensions - 1);
        char *out = PyArray_BYTES(result) + j * PyArray_STRIDE(result, dimensions - 1);
        for (npy_intp i = 0; i < rows; i++, in += from, out += to) {
            double x = *(double *)in, dry = coulomb;
            double sign = is_smooth ? tanh(x / width) : x > 0 ? 1.0 : x < 0 ? -1.0 : x;
            if (stribeck != 0) dry += stribeck * exp(-(x / speed) * (x / speed));
            *(double *)out = sign * dry + viscous * x + offset;
        }
    }
    return (PyObject *)result;
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
        !(bias = numbers(args[6], n)) || !(leaders = indices(args[0], n, &many)))
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

/* command(torque, v, rows, per_torque, per_speed, limit) */
static PyObject *command(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    double *torque, *v, *factors[3], *out;
    if (!has_count(count, 6)) return NULL;
    npy_intp n = size_of(args[0]), m, *rows;
    if (!(torque = numbers(args[0], n)) || !(v = numbers(args[1], n)) || !(rows = indices(args[2], n, &m)) ||
        !vectors(args + 3, 3, m, factors))
        return NULL;
    PyObject *result = new_vector(m, &out);
    if (!result) return NULL;
    for (npy_intp i = 0; i < m; i++) {
        double x = factors[0][i] * torque[rows[i]], limit = factors[2][i];
        if (factors[1][i] != 0) x += factors[1][i] * v[rows[i]];
        if (!isfinite(x)) x = 0;
        if (!(x <= limit)) x = limit;
        if (!(x >= -limit)) x = -limit;
        out[i] = x;
    }
    return result;
}

#define ENTRY(a, i, j) (*(double *)PyArray_GETPTR2(a, i, j))

/* Solves A_rr x = b_r for the `count` joints `rows`, b_r given in x; factors has room for A_rr. Numbers that
   are NaN stay so. 0 and an error if A_rr is singular. */
static int solve_rows(PyArrayObject *A, const npy_intp *rows, npy_intp count, double *factors, double *x)
{
    for (npy_intp i = 0; i < count; i++)
        for (npy_intp j = 0; j < count; j++) factors[i * count + j] = ENTRY(A, rows[i], rows[j]);
    double pivot = eliminated(factors, count, x, 1);
    if (pivot == 0) PyErr_SetString(PyExc_ZeroDivisionError, "the matrix is singular");
    for (npy_intp i = 0; i < count && isnan(pivot); i++) x[i] = NAN;
    return pivot != 0;
}

static PyArrayObject *square(PyObject *x, npy_intp n)
{
    PyArrayObject *a = matrix(x, n);
    if (!a || PyArray_DIM(a, 1) == n) return a;
    PyErr_Format(PyExc_TypeError, "expected a square matrix, got %R", x);
    return NULL;
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

static double sign_of(double x)
{
    return x > 0 ? 1.0 : x < 0 ? -1.0 : x;
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

/* end_stop_torque(q, v, lower, upper, stiffness, damping) */
static PyObject *end_stop_torque(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    double *x[6], *out;
    npy_intp n = count ? size_of(args[0]) : 0;
    if (!has_count(count, 6) || !vectors(args, 6, n, x)) return NULL;
    PyObject *result = new_vector(n, &out);
    if (!result) return NULL;
    for (npy_intp i = 0; i < n; i++) {
        double below = x[0][i] - x[2][i], above = x[0][i] - x[3][i];
        double depth = (below < 0 ? below : 0) + (above > 0 ? above : 0);
        double torque = -x[4][i] * depth - x[5][i] * x[1][i];
        out[i] = torque * depth < 0 ? torque : 0;
    }
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

/* nearest_within(torque, limit, A, driven, rounding) */
static PyObject *nearest_within(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    double *torque, *limit, *driven, *out;
    PyArrayObject *A;
    if (!has_count(count, 5)) return NULL;
    npy_intp n = size_of(args[0]), m;
    if (!(torque = numbers(args[0], n)) || !(limit = numbers(args[1], n)) || !(A = square(args[2], n)) ||
        !(driven = numbers(args[3], n)))
        return NULL;
    double most = 1 + PyFloat_AsDouble(args[4]);
    if (PyErr_Occurred()) return NULL;
    PyObject *result = new_vector(n, &out);
    double *side = PyMem_Malloc((3 * n + n * n) * sizeof(double) + 1); /* 1: at the upper limit, -1: at the lower */
    npy_intp *rows = PyMem_Malloc(n * sizeof(npy_intp) + 1);
    if (!result || !side || !rows) {
        PyErr_NoMemory();
        goto end;
    }
    double *missing = side + n, *wanted = missing + n, *factors = wanted + n;
    int is_beyond = 0;
    for (npy_intp i = 0; i < n; i++) {
        int is_above = driven[i] * fabs(torque[i]) > most * limit[i];
        out[i] = torque[i];
        side[i] = is_above ? sign_of(torque[i]) : 0;
        is_beyond |= is_above;
    }
    for (npy_intp turn = 0; turn < 4 * n && is_beyond; turn++) {
        npy_intp last = -1;
        m = 0;
        for (npy_intp i = 0; i < n; i++)
            if (side[i] != 0) rows[m] = i, missing[m++] = side[i] * limit[i] - torque[i];
        if (!solve_rows(A, rows, m, factors, missing)) goto end;
        for (npy_intp i = 0; i < n; i++) {
            double added = 0;
            for (npy_intp k = 0; k < m; k++) added += ENTRY(A, i, rows[k]) * missing[k];
            out[i] = torque[i] + added;
            wanted[i] = fabs(out[i]) > most * limit[i] ? sign_of(out[i]) : 0;
        }
        for (npy_intp k = 0; k < m; k++) wanted[rows[k]] = side[rows[k]] * missing[k] > 0 ? 0 : side[rows[k]];
        for (npy_intp i = 0; i < n; i++)
            if (wanted[i] != side[i] && driven[i] > 0) {
                last = i;
                if (turn < n) side[i] = wanted[i];
            }
        if (last < 0) break;
        /* One change at a time always ends; all at once is faster, but could go round in circles. */
        side[last] = wanted[last];
    }
end:
    PyMem_Free(side);
    PyMem_Free(rows);
    if (PyErr_Occurred()) Py_CLEAR(result);
    return result;
}

/* decay_in_time(momentum, driven, effort, rate, decay, delay) */
static PyObject *decay_in_time(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    double *x[4];
    npy_intp n = count ? size_of(args[0]) : 0;
    if (!has_count(count, 6) || !vectors(args, 4, n, x)) return NULL;
    double decay = PyFloat_AsDouble(args[4]), delay = PyFloat_AsDouble(args[5]), slowest = decay;
    if (PyErr_Occurred()) return NULL;
    for (npy_intp i = 0; i < n; i++) {
        double momentum = fabs(x[0][i]), most = x[2][i] / decay;
        if (momentum > most || isnan(most)) momentum = most;
        double in_time = 2 / (delay + sqrt(delay * delay + 4 * momentum / x[3][i]));
        if (x[1][i] > 0 && (in_time < slowest || isnan(in_time))) slowest = in_time;
    }
    return PyFloat_FromDouble(slowest);
}

/* follow(motion, q, v, times, now, continuous, highest, filter, slack, jump, gap) */
static PyObject *follow(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    double *motion, *q, *v, *times = NULL, time = 0, bounds[5];
    const npy_bool *continuous;
    if (!has_count(count, 11)) return NULL;
    npy_intp n = size_of(args[1]);
    if (!(motion = numbers(args[0], 4 * n)) || !(q = numbers(args[1], n)) || !(v = numbers(args[2], n)) ||
        !(continuous = mask_of(args[5], n)))
        return NULL;
    if (!PyArray_Check(args[3])) time = PyFloat_AsDouble(args[3]);
    else if (!(times = numbers(args[3], n))) return NULL;
    double now = PyFloat_AsDouble(args[4]);
    for (int k = 0; k < 5; k++) bounds[k] = PyFloat_AsDouble(args[6 + k]);
    if (PyErr_Occurred()) return NULL;
    double highest = bounds[0], filter = bounds[1], slack = bounds[2], jump = bounds[3], gap = bounds[4];
    for (npy_intp i = 0; i < n; i++) {
        double *sampled = motion + i, *used = sampled + n, *speed = used + n, *place = speed + n;
        if (times) time = times[i];
        if (time == *sampled) continue;
        int is_first = isnan(*sampled);
        double elapsed = now - *used < 0 ? 0 : now - *used;
        double measured = v[i] < -highest ? -highest : v[i] > highest ? highest : v[i];
        double predicted = *place + elapsed * measured, error = q[i] - predicted, missed = 0, share = 1;
        if (continuous[i] && !(fabs(error) < PI)) {
            error = fmod(error + PI, 2 * PI);
            error += error < 0 ? PI : -PI;
        }
        int begins = is_first || fabs(error) > jump || elapsed > gap;
        if (!begins) {
            missed = error - (error < -slack ? -slack : error > slack ? slack : error);
            missed /= elapsed < filter ? filter : elapsed;
        }
        if (!is_first && !(elapsed >= filter)) share = elapsed / filter;
        *speed += share * (measured + missed - *speed);
        *place = begins ? q[i] : predicted + elapsed * missed;
        *sampled = time, *used = now;
    }
    Py_RETURN_NONE;
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

/* in_proportion(torque, last, limit, rate, dt) */
static PyObject *in_proportion(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    double *x[4], *out, excess = 0;
    npy_intp n = count ? size_of(args[0]) : 0;
    if (!has_count(count, 5) || !vectors(args, 4, n, x)) return NULL;
    double *torque = x[0], *last = x[1], *limit = x[2], *rate = x[3], dt = PyFloat_AsDouble(args[4]);
    if (PyErr_Occurred()) return NULL;
    PyObject *result = new_vector(n, &out);
    if (!result) return NULL;
    for (npy_intp i = 0; i < n; i++) {
        double wanted = torque[i] > limit[i] ? limit[i] : torque[i] < -limit[i] ? -limit[i] : torque[i];
        out[i] = wanted - last[i];
        double share = rate[i] * dt > 0 ? fabs(out[i]) / (rate[i] * dt) : 0;
        if (share > excess || isnan(share)) excess = share;
    }
    for (npy_intp i = 0; i < n; i++) out[i] = excess > 1 ? last[i] + out[i] / excess : torque[i];
    return result;
}

#define CROSS(u, w, out) \
    (out)[0] = (u)[1] * (w)[2] - (u)[2] * (w)[1], (out)[1] = (u)[2] * (w)[0] - (u)[0] * (w)[2], \
    (out)[2] = (u)[0] * (w)[1] - (u)[1] * (w)[0]

/* add_wrench(torque, rotation, translation, place, f, J, moving) */
static PyObject *add_wrench(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    double *torque, *p, *place, *f, *moving, inner[6], w[6], part[3];
    if (!has_count(count, 7)) return NULL;
    PyArrayObject *R = matrix(args[1], 3), *J = R ? matrix(args[5], 6) : NULL;
    if (!J || !(p = numbers(args[2], 3)) || !(place = numbers(args[3], 12)) ||
        !(f = numbers(args[4], 6)))
        return NULL;
    if (PyArray_DIM(R, 1) != 3) return PyErr_Format(PyExc_TypeError, "expected a rotation, got %R", args[1]);
    npy_intp n = PyArray_DIM(J, 1);
    if (!(torque = numbers(args[0], n)) || !(moving = numbers(args[6], n))) return NULL;
    /* From the frame to its joint, then to the world. */
    for (int k = 0; k < 6; k += 3)
        for (int i = 0; i < 3; i++)
            inner[k + i] = place[3 * i] * f[k] + place[3 * i + 1] * f[k + 1] + place[3 * i + 2] * f[k + 2];
    CROSS(place + 9, inner, part);
    for (int i = 0; i < 3; i++) inner[3 + i] += part[i];
    for (int k = 0; k < 6; k += 3)
        for (int i = 0; i < 3; i++)
            w[k + i] = ENTRY(R, i, 0) * inner[k] + ENTRY(R, i, 1) * inner[k + 1] + ENTRY(R, i, 2) * inner[k + 2];
    CROSS(p, w, part);
    for (int i = 0; i < 3; i++) w[3 + i] += part[i];
    for (npy_intp j = 0; j < n; j++) {
        double sum = 0;
        for (int i = 0; i < 6; i++) sum += w[i] * ENTRY(J, i, j);
        torque[j] += moving[j] * sum;
    }
    Py_RETURN_NONE;
}

/* complete(a, unknown, rows, E, bias, friction) */
static PyObject *complete(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    double *a, *h[2];
    if (!has_count(count, 6)) return NULL;
    npy_intp n = size_of(args[0]), size = size_of(args[4]), m, many, *unknown, *rows;
    PyArrayObject *E;
    if (!(a = numbers(args[0], n)) || !vectors(args + 4, 2, size, h) || !(E = matrix(args[3], size))) return NULL;
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

/* Adds J^T x to `out`. */
static void add_transposed(PyArrayObject *J, const double *x, double factor, double *out)
{
    for (npy_intp i = 0; i < PyArray_DIM(J, 0); i++)
        for (npy_intp j = 0; j < PyArray_DIM(J, 1); j++) out[j] += factor * x[i] * ENTRY(J, i, j);
}

/* release(force, J, rows) */
static PyObject *release(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    double *force;
    if (!has_count(count, 3)) return NULL;
    npy_intp n = size_of(args[0]), m, *rows;
    PyArrayObject *J;
    if (!(force = numbers(args[0], n)) || !(J = matrix(args[1], size_of(args[2])))) return NULL;
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

/* fastest_point(placements, parents, axes, links, points, v) */
static PyObject *fastest_point(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    double *axes, *points, *v, fastest = 0;
    if (!has_count(count, 6)) return NULL;
    npy_intp n = size_of(args[5]), m, joints, *parents, *links;
    if (!PyTuple_Check(args[0]) || PyTuple_GET_SIZE(args[0]) != 2 * n)
        return PyErr_Format(PyExc_TypeError, "expected %zd rotations and translations", (Py_ssize_t)n);
    if (!(v = numbers(args[5], n)) || !(axes = numbers(args[2], 6 * n)) ||
        !(parents = indices(args[1], n + 1, &joints)) || !(links = indices(args[3], n + 1, &m)) ||
        !(points = numbers(args[4], 3 * m)))
        return NULL;
    if (joints != n) return PyErr_Format(PyExc_TypeError, "expected %zd parents, got %R", (Py_ssize_t)n, args[1]);
    double *motions = PyMem_Calloc(6 * (n + 1), sizeof(double)), part[3]; /* of each link, in its frame */
    if (!motions) return PyErr_NoMemory();
    for (npy_intp i = 0; i < n; i++) {
        PyArrayObject *R = square(PyTuple_GET_ITEM(args[0], 2 * i), 3);
        double *p = R ? numbers(PyTuple_GET_ITEM(args[0], 2 * i + 1), 3) : NULL;
        if (!p) goto end;
        if (parents[i] > i) {
            PyErr_SetString(PyExc_IndexError, "a link comes before its parent");
            goto end;
        }
        double *above = motions + 6 * parents[i], *own = motions + 6 * (i + 1);
        CROSS(above + 3, p, part);
        for (int k = 0; k < 3; k++) part[k] += above[k];
        for (int k = 0; k < 3; k++) {
            own[k] = ENTRY(R, 0, k) * part[0] + ENTRY(R, 1, k) * part[1] + ENTRY(R, 2, k) * part[2];
            own[3 + k] = ENTRY(R, 0, k) * above[3] + ENTRY(R, 1, k) * above[4] + ENTRY(R, 2, k) * above[5];
        }
        for (int k = 0; k < 6; k++) own[k] += axes[6 * i + k] * v[i];
    }
    for (npy_intp i = 0; i < m; i++) {
        double *u = motions + 6 * links[i], square = 0;
        CROSS(u + 3, points + 3 * i, part);
        for (int k = 0; k < 3; k++) square += (u[k] + part[k]) * (u[k] + part[k]);
        if (square > fastest || isnan(square)) fastest = square;
    }
end:
    PyMem_Free(motions);
    return PyErr_Occurred() ? NULL : PyFloat_FromDouble(sqrt(fastest));
}

#define WHEEL 7 /* numbers per wheel, in the frame of its joint: axle 3, centre 3, radius */

/* Where a wheel touches the ground. */
typedef struct {
    double a[3], level;          /* axle in the world, and its length along the ground */
    double x, y;                 /* direction sideways, along the ground */
    double centre[3], point[3];  /* of the wheel, and from there to the ground */
    double radius;
} Contact;

/* 0 and an error if the axle has no direction along the ground, or an argument is not of its kind. */
static int contact_of(PyObject *const *args, Contact *contact)
{
    double *p, *wheel, *a = contact->a;
    PyArrayObject *R = matrix(args[0], 3);
    if (!R || PyArray_DIM(R, 1) != 3 || !(p = numbers(args[1], 3)) || !(wheel = numbers(args[2], WHEEL))) {
        if (!PyErr_Occurred()) PyErr_Format(PyExc_TypeError, "expected a rotation, got %R", args[0]);
        return 0;
    }
    for (int i = 0; i < 3; i++) {
        a[i] = contact->centre[i] = 0;
        for (int j = 0; j < 3; j++) {
            a[i] += ENTRY(R, i, j) * wheel[j];
            contact->centre[i] += ENTRY(R, i, j) * wheel[3 + j];
        }
        contact->centre[i] += p[i];
    }
    contact->level = hypot(a[0], a[1]);
    if (!(contact->level >= 1e-6)) {
        PyErr_SetString(PyExc_ValueError, "an axle is vertical; it must be parallel to the ground");
        return 0;
    }
    contact->x = a[0] / contact->level, contact->y = a[1] / contact->level, contact->radius = wheel[6];
    contact->point[0] = contact->radius * a[2] * contact->x;
    contact->point[1] = contact->radius * a[2] * contact->y;
    contact->point[2] = -contact->radius * contact->level;
    return 1;
}

/* Rows of the velocity of a contact point, of n numbers each and `stride` rows apart. */
static void contact_rows(const Contact *contact, PyArrayObject *J, const double *moving, npy_intp stride, double *out)
{
    double c[3];
    npy_intp n = PyArray_DIM(J, 1);
    /* J is about the world's origin: the velocity along an axis e is e . v + (c x e) . w. */
    for (int i = 0; i < 3; i++) c[i] = contact->centre[i] + contact->point[i];
    double axes[3][6] = {{contact->y, -contact->x, 0}, {contact->x, contact->y, 0}, {0, 0, 1}};
    for (int i = 0; i < 3; i++) CROSS(c, axes[i], axes[i] + 3);
    for (int i = 0; i < 3; i++)
        for (npy_intp j = 0; j < n; j++) {
            double sum = 0;
            for (int k = 0; k < 6; k++) sum += axes[i][k] * ENTRY(J, k, j);
            out[i * stride * n + j] = moving[j] * sum;
        }
}

/* The acceleration of the same point at joint velocities v, without joint acceleration. */
static void contact_bias(const Contact *wheel, PyArrayObject *J, const double *moving, const double *v, npy_intp stride,
                         double *out)
{
    Contact contact = *wheel;
    double speed[6] = {0}, bias[6] = {0}, part[3], rate[3], slip[3], turned[3], carried[3];
    /* A column of J moves with its link: its derivative is the motion cross product with the link's velocity. */
    for (npy_intp j = 0; j < PyArray_DIM(J, 1); j++) {
        double own[6];
        for (int k = 0; k < 6; k++) own[k] = moving[j] * v[j] * ENTRY(J, k, j);
        CROSS(speed + 3, own, part);
        for (int i = 0; i < 3; i++) bias[i] += part[i];
        CROSS(speed, own + 3, part);
        for (int i = 0; i < 3; i++) bias[i] += part[i];
        CROSS(speed + 3, own + 3, part);
        for (int i = 0; i < 3; i++) bias[3 + i] += part[i];
        for (int k = 0; k < 6; k++) speed[k] += own[k];
    }
    double *spin = speed + 3, *turn = bias + 3, velocity[3], x = contact.x, y = contact.y, *a = contact.a;
    CROSS(spin, contact.centre, velocity); /* of the wheel's centre, then its acceleration */
    for (int i = 0; i < 3; i++) velocity[i] += speed[i];
    CROSS(turn, contact.centre, part);
    CROSS(spin, velocity, carried);
    for (int i = 0; i < 3; i++) bias[i] += part[i] + carried[i];
    CROSS(spin, a, rate); /* of the axle */
    double level_rate = x * rate[0] + y * rate[1];
    double x_rate = (rate[0] - level_rate * x) / contact.level, y_rate = (rate[1] - level_rate * y) / contact.level;
    double point_rate[3] = {rate[2] * x + a[2] * x_rate, rate[2] * y + a[2] * y_rate, -level_rate};
    for (int i = 0; i < 3; i++) point_rate[i] *= contact.radius;
    CROSS(spin, contact.point, slip);
    CROSS(turn, contact.point, turned);
    CROSS(spin, point_rate, carried);
    for (int i = 0; i < 3; i++) slip[i] += velocity[i], turned[i] += bias[i] + carried[i];
    out[0] = y * turned[0] - x * turned[1] + y_rate * slip[0] - x_rate * slip[1];
    out[stride] = x * turned[0] + y * turned[1] + x_rate * slip[0] + y_rate * slip[1];
    out[2 * stride] = turned[2];
}

/* contacts(wheels, J, v) */
static PyObject *contacts(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    double *v, *moving, *all_rows, *all_bias;
    PyArrayObject *J;
    if (!has_count(count, 3) || !(J = matrix(args[1], 6)) || !(v = numbers(args[2], PyArray_DIM(J, 1)))) return NULL;
    if (!PyTuple_Check(args[0])) return PyErr_Format(PyExc_TypeError, "expected a tuple of wheels, got %R", args[0]);
    npy_intp m = PyTuple_GET_SIZE(args[0]), shape[2] = {3 * m, PyArray_DIM(J, 1)};
    PyObject *bias = new_vector(3 * m, &all_bias), *rows = PyArray_SimpleNew(2, shape, NPY_DOUBLE);
    if (!bias || !rows) goto failed;
    all_rows = PyArray_DATA((PyArrayObject *)rows);
    for (npy_intp k = 0; k < m; k++) {
        PyObject *wheel = PyTuple_GET_ITEM(args[0], k);
        Contact contact;
        if (!PyTuple_Check(wheel) || PyTuple_GET_SIZE(wheel) != 4) {
            PyErr_Format(PyExc_TypeError, "expected rotation, translation, wheel and moving, got %R", wheel);
            goto failed;
        }
        PyObject *const *fields = &PyTuple_GET_ITEM(wheel, 0);
        if (!contact_of(fields, &contact) || !(moving = numbers(fields[3], shape[1]))) goto failed;
        contact_rows(&contact, J, moving, m, all_rows + k * shape[1]);
        contact_bias(&contact, J, moving, v, m, all_bias + k);
    }
    return Py_BuildValue("NN", rows, bias);
failed:
    Py_XDECREF(rows);
    Py_XDECREF(bias);
    return NULL;
}

/* States of a motion that are computed at once, in the vectors that every 64-bit processor has. */
#define STATES 2
typedef double Lanes __attribute__((vector_size(8 * STATES), aligned(8)));

#define BODY 22 /* numbers per body: rotation 9, origin 3, mass, mass moment 3, inertia 6 */

/* Of one link, in its own frame, whose z is the axis of its joint. */
typedef struct {
    Lanes q, cos, sin;
    Lanes w[3], dw[3], a[3], g[3]; /* angular velocity and acceleration; acceleration of the origin; gravity */
    Lanes f[3], n[3];              /* force and moment about the origin of all that the joint carries */
    Lanes weight[3], tilt[3];      /* the same of gravity alone */
} Link;

static inline void turned(const double *R, const Lanes *x, Lanes *out)
{
    for (int i = 0; i < 3; i++) out[i] = R[3 * i] * x[0] + R[3 * i + 1] * x[1] + R[3 * i + 2] * x[2];
}

/* Adds R^T x, a vector in the frame of the parent, to `out`, and r x R^T x to `moment`. */
static inline void add_turned_back(const double *R, const double *r, const Lanes *x, Lanes *out, Lanes *moment)
{
    Lanes back[3], lever[3];
    for (int i = 0; i < 3; i++) back[i] = R[i] * x[0] + R[3 + i] * x[1] + R[6 + i] * x[2];
    CROSS(r, back, lever);
    for (int i = 0; i < 3; i++) out[i] += back[i], moment[i] += lever[i];
}

/* Turns about z by the angle of this cosine and sine. */
static inline void turn(Lanes cos, Lanes sin, Lanes *x)
{
    Lanes first = cos * x[0] - sin * x[1];
    x[1] = sin * x[0] + cos * x[1];
    x[0] = first;
}

/* Adds dw x r + w x (w x r), the acceleration of a point r of a turning body. */
static inline void add_turning(const Lanes *w, const Lanes *dw, const Lanes *r, Lanes *out)
{
    Lanes speed[3], inward[3], along[3];
    CROSS(w, r, speed);
    CROSS(w, speed, inward);
    CROSS(dw, r, along);
    for (int i = 0; i < 3; i++) out[i] += along[i] + inward[i];
}

/* Newton and Euler on the way out: the motion of a link, and the force and moment that its body needs. */
static inline void move_link(const Link *parent, const double *body, int slides, Lanes v, Lanes a, Link *link)
{
    const double *r = body + 9, mass = body[12], *h = body + 13, *J = body + 16;
    Lanes at[3], place[3], moment[3], spin[3];
    for (int i = 0; i < 3; i++) at[i] = parent->a[i], place[i] = r[i] + 0 * v;
    add_turning(parent->w, parent->dw, place, at);
    turned(body, parent->w, link->w);
    turned(body, parent->dw, link->dw);
    turned(body, parent->g, link->g);
    turned(body, at, link->a);
    if (slides) {
        Lanes slid[3] = {0 * v, 0 * v, link->q};
        add_turning(link->w, link->dw, slid, link->a);
        link->a[0] += 2 * link->w[1] * v;
        link->a[1] -= 2 * link->w[0] * v;
        link->a[2] += a;
    } else {
        turn(link->cos, -link->sin, link->w);
        turn(link->cos, -link->sin, link->dw);
        turn(link->cos, -link->sin, link->g);
        turn(link->cos, -link->sin, link->a);
        link->dw[0] += link->w[1] * v;
        link->dw[1] -= link->w[0] * v;
        link->dw[2] += a;
        link->w[2] += v;
    }
    for (int i = 0; i < 3; i++) {
        place[i] = h[i] + 0 * v;
        link->f[i] = mass * link->a[i];
        link->weight[i] = mass * link->g[i];
    }
    add_turning(link->w, link->dw, place, link->f);
    CROSS(h, link->g, link->tilt);
    CROSS(h, link->a, link->n);
    const Lanes *w = link->w, *dw = link->dw;
    moment[0] = J[0] * w[0] + J[1] * w[1] + J[2] * w[2];
    moment[1] = J[1] * w[0] + J[3] * w[1] + J[4] * w[2];
    moment[2] = J[2] * w[0] + J[4] * w[1] + J[5] * w[2];
    CROSS(w, moment, spin);
    link->n[0] += spin[0] + J[0] * dw[0] + J[1] * dw[1] + J[2] * dw[2];
    link->n[1] += spin[1] + J[1] * dw[0] + J[3] * dw[1] + J[4] * dw[2];
    link->n[2] += spin[2] + J[2] * dw[0] + J[4] * dw[1] + J[5] * dw[2];
}

/* On the way back: the load of a link is handed to its parent. */
static inline void hand_over(Link *link, const double *body, int slides, Link *parent)
{
    Lanes *loads[4] = {link->f, link->n, link->weight, link->tilt};
    if (slides) { /* z q x f */
        link->n[0] -= link->q * link->f[1], link->n[1] += link->q * link->f[0];
        link->tilt[0] -= link->q * link->weight[1], link->tilt[1] += link->q * link->weight[0];
    } else
        for (int i = 0; i < 4; i++) turn(link->cos, link->sin, loads[i]);
    Lanes unused[3] = {0 * link->q, 0 * link->q, 0 * link->q};
    add_turned_back(body, body + 9, link->f, parent->f, parent->n);
    add_turned_back(body, body + 9, link->n, parent->n, unused);
    add_turned_back(body, body + 9, link->weight, parent->weight, parent->tilt);
    add_turned_back(body, body + 9, link->tilt, parent->tilt, unused);
}

/* rigid_torques(q, v, a, parents, slides, bodies, gravity) */
static PyObject *rigid_torques(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    double *q, *v, *a, *bodies, *gravity;
    if (!has_count(count, 7)) return NULL;
    PyArrayObject *parents = (PyArrayObject *)args[3], *slides = (PyArrayObject *)args[4];
    npy_intp n = size_of(args[3]), size = size_of(args[0]), states = n > 0 ? size / n : 0;
    if (!(q = numbers(args[0], n > 0 ? n * states : 0)) || !(v = numbers(args[1], size)) ||
        !(a = numbers(args[2], size)) || !(bodies = numbers(args[5], n * BODY)) || !(gravity = numbers(args[6], 3)))
        return NULL;
    if (!PyArray_Check(args[3]) || PyArray_TYPE(parents) != NPY_INTP || !PyArray_ISCARRAY_RO(parents) ||
        !PyArray_Check(args[4]) || PyArray_TYPE(slides) != NPY_BOOL || !PyArray_ISCARRAY_RO(slides) ||
        PyArray_SIZE(slides) != n)
        return PyErr_Format(PyExc_TypeError, "expected indices and a mask of %zd joints", (Py_ssize_t)n);
    npy_intp *parent = PyArray_DATA(parents), shape[3] = {2, n, states};
    npy_bool *slide = PyArray_DATA(slides);
    for (npy_intp i = 0; i < n; i++)
        if (parent[i] < 0 || parent[i] > i) return PyErr_Format(PyExc_IndexError, "a link comes before its parent");
    PyObject *result = PyArray_SimpleNew(3, shape, NPY_DOUBLE);
    Link *links = PyMem_Calloc(n + 1, sizeof(Link)); /* the first is the root */
    if (!result || !links) {
        Py_XDECREF(result);
        PyMem_Free(links);
        return PyErr_NoMemory();
    }
    double *out = PyArray_DATA((PyArrayObject *)result);
    for (int i = 0; i < 3; i++) links[0].a[i] = links[0].g[i] = links[0].g[i] - gravity[i];
    for (npy_intp k = 0; k < states; k += STATES) {
        size_t bytes = sizeof(double) * (states - k < STATES ? states - k : STATES);
        for (npy_intp i = 0; i < n; i++) {
            Link *link = links + i + 1;
            Lanes speed = {0}, acceleration = {0};
            memcpy(&link->q, q + i * states + k, bytes);
            memcpy(&speed, v + i * states + k, bytes);
            memcpy(&acceleration, a + i * states + k, bytes);
            for (int j = 0; j < STATES; j++) link->cos[j] = cos(link->q[j]), link->sin[j] = sin(link->q[j]);
            move_link(links + parent[i], bodies + BODY * i, slide[i], speed, acceleration, link);
        }
        for (npy_intp i = n - 1; i >= 0; i--) {
            Link *link = links + i + 1;
            memcpy(out + i * states + k, slide[i] ? &link->weight[2] : &link->tilt[2], bytes);
            memcpy(out + size + i * states + k, slide[i] ? &link->f[2] : &link->n[2], bytes);
            hand_over(link, bodies + BODY * i, slide[i], links + parent[i]);
        }
    }
    PyMem_Free(links);
    return result;
}

#define KERNEL(name) {#name, (PyCFunction)(void (*)(void))name, METH_FASTCALL, NULL}

static PyMethodDef methods[] = {
    {"is_finite", is_finite, METH_O, NULL},
    KERNEL(are_vectors),
    KERNEL(evaluated),
    KERNEL(joint_state),
    KERNEL(consistent),
    KERNEL(is_within),
    KERNEL(is_near),
    KERNEL(quintic),
    KERNEL(feedback),
    KERNEL(complete),
    KERNEL(release),
    KERNEL(unconstrained),
    KERNEL(forces),
    KERNEL(scaled),
    KERNEL(limited),
    KERNEL(observed),
    KERNEL(solved),
    KERNEL(solved_part),
    KERNEL(constrained),
    KERNEL(end_stop_torque),
    KERNEL(moved),
    KERNEL(nearest_within),
    KERNEL(decay_in_time),
    KERNEL(follow),
    KERNEL(between),
    KERNEL(in_proportion),
    KERNEL(fastest_point),
    KERNEL(friction),
    KERNEL(add),
    KERNEL(unfolded),
    KERNEL(folded),
    KERNEL(command),
    KERNEL(add_wrench),
    KERNEL(contacts),
    KERNEL(rigid_torques),
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "kernels", NULL, -1, methods};

PyMODINIT_FUNC PyInit_kernels(void)
{
    import_array();
    return PyModule_Create(&module);
}
