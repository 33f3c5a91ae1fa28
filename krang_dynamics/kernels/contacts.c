/* Where wheels touch the ground. */

#include "kernels.h"

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

PyMethodDef contact_kernels[] = {
    KERNEL(contacts),
    END,
};
