"""Java classes and their static methods by name, each asked for once: py4j asks the JVM for every part of a name, every time."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from py4j.java_gateway import JavaClass, JavaMember, JavaPackage, JVMView  # type: ignore[import-untyped]  # py4j ships no types

__all__ = ["JavaNames", "names_of"]

_names: WeakKeyDictionary[JVMView, JavaNames] = WeakKeyDictionary()


class JavaNames:
    """What a JVM's packages hold, as attributes.

    Parameters
    ----------
    packages
        py4j's view of the JVM, or one of its packages.
    """

    def __init__(self, packages: Any) -> None:
        self._packages = packages

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._packages, name)
        if isinstance(found, JavaClass):
            found = _Class(found._fqn, found._gateway_client)
        elif not isinstance(found, JavaPackage) or name[:1].isupper():
            return found
        else:
            found = JavaNames(found)
        self.__dict__[name] = found
        return found


class _Class(JavaClass):  # type: ignore[misc]  # py4j ships no types
    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        if isinstance(found, JavaMember):  # a method; the value of a static field may be another one next time
            self.__dict__[name] = found
        return found


def names_of(jvm: JVMView) -> JavaNames:
    """Return the names of a JVM, the same for each view of py4j's."""
    found = _names.get(jvm)
    if found is None:
        found = _names[jvm] = JavaNames(jvm)
    return found
