/* Measured joint states. */

#include "kernels.h"

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
        !(repeated = numbers(args[2], n)) || !(drift = numbers(args[3], n)) || !(bounds = numbers(args[5], 5)) ||
        !is_writable(args[2]) || !is_writable(args[3]))
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

/* follow(motion, q, v, times, now, continuous, highest, filter, slack, jump, gap) */
static PyObject *follow(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    double *motion, *q, *v, *times = NULL, time = 0, bounds[5];
    const npy_bool *continuous;
    if (!has_count(count, 11)) return NULL;
    npy_intp n = size_of(args[1]);
    if (!(motion = numbers(args[0], 4 * n)) || !is_writable(args[0]) || !(q = numbers(args[1], n)) ||
        !(v = numbers(args[2], n)) || !(continuous = mask_of(args[5], n)))
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

PyMethodDef state_kernels[] = {
    KERNEL(joint_state),
    KERNEL(consistent),
    KERNEL(follow),
    END,
};
