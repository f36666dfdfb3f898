import ArgumentParser
import Core
import NodeAPI
import NodeAssembly

/// The options that protocols of other packages declare, as options of serve. Only the parser, help and shell completion use them: their values are
/// read by ``ServeOption/value(_:)``.
///
/// ArgumentParser finds the properties of a type by reflection, and these are not known when this type is compiled.
struct AddedOptions: ParsableArguments, CustomReflectable {
    /// The title of their section in help texts.
    static var title: String {
        let names = NodeAssembly.added.filter { !$0.options.isEmpty }.map(\.name)
        return names.isEmpty ? "" : names.joined(separator: " and ") + " options"
    }

    init() {}

    /// Takes the values from the parser, which reports those that nothing takes as unexpected.
    init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: DynamicKey.self)
        for form in NodeAssembly.addedOptions { _ = values.contains(DynamicKey(stringValue: form.name)) }
    }

    var customMirror: Mirror {
        Mirror(
            self,
            children: NodeAssembly.addedOptions.map { form -> Mirror.Child in
                let help = form.help + (form.standard.map { " (default: \($0))" } ?? "")
                return (form.name, Option<String?>(name: .customLong(form.name), help: ArgumentHelp(help)))
            })
    }
}
