/* The Python module krang_dynamics.kernels. */

#define IMPORTS_NUMPY
#include "kernels.h"

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "kernels", NULL, -1, NULL};

PyMODINIT_FUNC PyInit_kernels(void)
{
    PyMethodDef *files[] = {vector_kernels, state_kernels, equation_kernels, control_kernels, stop_kernels,
                            contact_kernels, rigid_body_kernels, NULL};
    import_array();
    PyObject *module = PyModule_Create(&definition);
    for (PyMethodDef **file = files; module && *file; file++)
        if (PyModule_AddFunctions(module, *file) < 0) Py_CLEAR(module);
    return module;
}
