/* Braking within the limits of torque and rate, and the speed of the fastest point. */

#include "linear_algebra.h"

static double sign_of(double x)
{
    return x > 0 ? 1.0 : x < 0 ? -1.0 : x;
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

PyMethodDef stop_kernels[] = {
    KERNEL(nearest_within),
    KERNEL(decay_in_time),
    KERNEL(in_proportion),
    KERNEL(fastest_point),
    END,
};
