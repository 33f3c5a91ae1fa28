/* The torques along a recorded motion, several states at once. */

#include "kernels.h"

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

PyMethodDef rigid_body_kernels[] = {
    KERNEL(rigid_torques),
    END,
};
