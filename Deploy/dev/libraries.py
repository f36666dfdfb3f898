"""The package's modules as the last build left them. For check-api and Deploy/document."""
import json
import os
import re
import subprocess

BUILD = os.environ.get("BUILD_PRODUCTS", ".build/debug")


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


class Package:
    def __init__(self):
        package = json.loads(output("swift", "package", "dump-package"))
        self.targets = {target["name"]: target for target in package["targets"]}
        # The modules of the library products.
        self.products = [name for product in package["products"] if "library" in product["type"] for name in product["targets"]]

    def folder(self, name):
        return self.targets[name]["path"]

    def dependencies(self, name):
        """The targets that a target depends on directly."""
        named = [value[0] for dependency in self.targets[name]["dependencies"] for value in dependency.values()]
        return [other for other in named if other in self.targets]

    def exports(self, name):
        """The names of the modules that a target re-exports."""
        found = set()
        for path, _, files in os.walk(self.folder(name)):
            for file in files:
                if file.endswith(".swift"):
                    with open(os.path.join(path, file), encoding="utf-8") as text:
                        found.update(re.findall(r"^@_exported public import (\w+)", text.read(), re.M))
        return found

    def libraries(self):
        """The products' modules and those that they re-export, each with the names of its re-exports."""
        found, left = {}, list(self.products)
        while left:
            name = left.pop()
            if name not in found:
                found[name] = self.exports(name)
                left += found[name] & self.targets.keys()
        return dict(sorted(found.items()))


def compiler_options():
    """The search path of modules, the module maps and the header folders that the build passed to the compiler."""
    with open(f"{BUILD}.yaml", encoding="utf-8") as manifest:
        text = manifest.read()
    clang = set(re.findall(r'"(-fmodule-map-file=[^"]+)"', text)) | {"-I" + folder for folder in re.findall(r'"-Xcc","-I","-Xcc","([^"]+)"', text)}
    # A cache of its own: the build's has the same modules, by a path without the link in `BUILD`, and the compiler takes those for others.
    return ["-I", f"{BUILD}/Modules", "-module-cache-path", ".build/api/ModuleCache", *(word for one in sorted(clang) for word in ("-Xcc", one))]


def extract_symbols(module, folder, options):
    """Writes the symbol graphs of a module's public declarations: its own, and one for each module that it extends. Returns their files."""
    os.makedirs(folder, exist_ok=True)
    target = json.loads(output("swift", "-print-target-info"))["target"]["triple"]
    subprocess.run(
        ["swift-symbolgraph-extract", "-module-name", module, "-target", target, "-minimum-access-level", "public", "-skip-synthesized-members",
         "-skip-inherited-docs", "-output-dir", folder, *options], check=True)
    return [os.path.join(folder, name) for name in os.listdir(folder)]
