/* From a reference to the commands of the drivers. */

#include "kernels.h"

#define CONTROL_POINTS 6 /* of a quintic */

/* quintic(control, s, out) */
static PyObject *quintic(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    double *control, *out;
    if (!has_count(count, 3)) return NULL;
    npy_intp n = size_of(args[2]);
    double s = PyFloat_AsDouble(args[1]), r = 1.0 - s;
    if (PyErr_Occurred() || !(control = numbers(args[0], CONTROL_POINTS * n)) || !(out = numbers(args[2], n)) ||
        !is_writable(args[2]))
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
    if (!(torque = numbers(args[0], n)) || !is_writable(args[0]) || !(moving = numbers(args[6], n))) return NULL;
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

/* observed(external, last, A, v, bias, friction, applied, dt, gain) */
static PyObject *observed(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    double *x[4], *last, *A, *external, *out;
    if (!has_count(count, 9)) return NULL;
    npy_intp n = size_of(args[0]);
    if (!(external = numbers(args[0], n)) || !(last = numbers(args[1], (n + 2) * n)) || !is_writable(args[1]) ||
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

PyMethodDef control_kernels[] = {
    KERNEL(quintic),
    KERNEL(feedback),
    KERNEL(forces),
    KERNEL(friction),
    KERNEL(end_stop_torque),
    KERNEL(add_wrench),
    KERNEL(observed),
    KERNEL(limited),
    KERNEL(command),
    END,
};
