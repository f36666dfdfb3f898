import ArgumentParser
import NodeAPI
import NodeAssembly

/// An option of serve, without the type of its value.
struct ServeOption {
    let name: String
    let help: String
    /// The default as it would be written on the command line; nil if there is none.
    let standard: String?
    var valueName: String?
    var isFlag = false
    var isList = false
    /// Whether its values are paths of files that are read.
    var isFile = false
    /// The allowed values; nil if any text is one, or it is a flag.
    var form: ValueForm?
    var reload = Reload.nothing

    /// The part of an option that SIGHUP applies; a change of the rest needs a restart.
    enum Reload {
        case nothing
        /// The contents of the file that it names.
        case content
        /// The value, and the contents of the file that it names.
        case value
    }

    static var all: [ServeOption] { Settings.all + added }

    /// The options of protocols of other packages, which ``AddedOptions`` declares to ArgumentParser.
    static var added: [ServeOption] { NodeAssembly.addedOptions.map(ServeOption.init) }

    static var names: Set<String> { Set(all.map(\.name)) }
    /// The names of the options that repeat.
    static var listNames: Set<String> { Set(all.filter(\.isList).map(\.name)) }

    /// Whether one of these options is on the command line, in the environment or in the configuration file.
    static func isGiven(_ names: String...) -> Bool {
        all.contains { names.contains($0.name) && $0.value(Invocation.current.arguments).source != "default" }
    }

    /// An effective value and its source.
    struct Value: Encodable, Equatable {
        let option: String
        /// Empty if the option has no value.
        let values: [String]
        /// `command line`, the name of an environment variable, file and line of the configuration file, or `default`.
        let source: String
    }

    /// Where an option's value is from: an environment variable, or file and line.
    ///
    /// - Parameters:
    ///   - name: an option of serve.
    ///   - index: the position of the value, if the option repeats.
    /// - Returns: nil for the command line, and for a default.
    static func place(of name: String?, index: Int = 0) -> String? {
        guard let option = all.first(where: { $0.name == name }) else { return nil }
        let source = option.value(Invocation.current.arguments).source
        guard source != "command line", source != "default" else { return nil }
        guard source != Environment.name(of: option.name), let places = Environment.file?.options[option.name]?.places else {
            return source
        }
        return places.indices.contains(index) ? places[index] : source
    }

    /// Removes values that their options do not allow from a command line, so that the remaining options are read.
    ///
    /// - Returns: the command line without these options, and a failure for each.
    static func removingInvalidValues(_ arguments: [String]) -> (arguments: [String], failures: [CommandFailure]) {
        let valued = Dictionary(uniqueKeysWithValues: all.filter { !$0.isFlag }.map { ("--\($0.name)", $0) })
        var (kept, failures) = ([String](), [CommandFailure]())
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            guard argument != "--" else { return (kept + [argument] + rest, failures) }
            let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            guard let option = valued[parts[0]] else {
                kept.append(argument)
                continue
            }
            let isJoined = parts.count > 1
            // A word that looks like an option is not a value: the parser reports that it is missing.
            guard let value = isJoined ? parts[1] : rest.first, isJoined || !value.hasPrefix("-") else {
                kept.append(argument)
                continue
            }
            if !isJoined { rest.removeFirst() }
            if let form = option.form, !form.accepts(value) {
                failures.append(ValueForm.problem(parts[0], option: option.name, value: value, allowed: form.allowed))
            } else {
                kept += isJoined ? [argument] : [argument, value]
            }
        }
        return (kept, failures)
    }

    static func wrapped(_ text: String, width: Int) -> [String] {
        var lines: [String] = []
        for word in text.split(separator: " ") {
            if let last = lines.last, last.count + word.count < width {
                lines[lines.count - 1] = "\(last) \(word)"
            } else {
                lines.append(String(word))
            }
        }
        return lines
    }

    /// The effective value.
    func value(_ arguments: [String]) -> Value {
        var given: [String] = []
        for (index, argument) in arguments.enumerated() {
            if isFlag {
                if argument == "--\(name)" { given = ["true"] }
                if argument == "--no-\(name)" { given = ["false"] }
            } else if argument == "--\(name)" {
                given += arguments.dropFirst(index + 1).prefix(1)
            } else if argument.hasPrefix("--\(name)=") {
                given.append(String(argument.dropFirst(name.count + 3)))
            }
        }
        if !given.isEmpty { return Value(option: name, values: isList ? given : given.suffix(1), source: "command line") }
        if let (values, source) = Environment.setting(name) {
            let place = source.split(separator: ": ").first.map(String.init) ?? source
            return Value(option: name, values: isList ? Environment.list(name) : values.suffix(1), source: place)
        }
        return Value(option: name, values: standard.map { [$0] } ?? [], source: "default")
    }
}

extension ServeOption {
    init(_ form: ProtocolOptionForm) {
        self.init(
            name: form.name, help: form.help, standard: form.standard, form: ValueForm(form),
            reload: form.isReloadable ? .value : .nothing)
    }
}

/// The declaration of an option: a ``ServeOption``, and the default.
struct Setting<Value: Sendable>: Sendable {
    let option: ServeOption
    let standard: Value
}

extension Setting where Value == String? {
    /// The effective value. Options with a default get theirs from ArgumentParser, which allows no default for optional ones.
    ///
    /// - Parameter given: from the command line.
    func value(_ given: String?) -> String? { given ?? Environment.string(option.name) }
}

extension Setting where Value: ExpressibleByArgument {
    init(_ name: String, _ standard: Value, _ help: String, reload: ServeOption.Reload = .nothing) {
        let option = ServeOption(
            name: name, help: help, standard: standard.defaultValueDescription, form: ValueForm(Value.self), reload: reload)
        self.init(option: option, standard: standard)
    }
}

extension Setting {
    /// An option without a default.
    init<T: ExpressibleByArgument & Sendable>(_ name: String, _ help: String, reload: ServeOption.Reload = .nothing) where Value == T? {
        self.init(option: ServeOption(name: name, help: help, standard: nil, form: ValueForm(T.self), reload: reload), standard: nil)
    }

    /// An option that repeats.
    init(_ name: String, _ help: String, valueName: String? = nil, reload: ServeOption.Reload = .nothing) where Value == [String] {
        let option = ServeOption(name: name, help: help, standard: nil, valueName: valueName, isList: true, reload: reload)
        self.init(option: option, standard: [])
    }

    /// An option that names a file.
    init(file name: String, _ help: String, reload: ServeOption.Reload = .nothing) where Value == String? {
        let option = ServeOption(name: name, help: help, standard: nil, isFile: true, form: ValueForm(String.self), reload: reload)
        self.init(option: option, standard: nil)
    }

    /// An option that names a file, and repeats.
    init(file name: String, _ help: String) where Value == [String] {
        self.init(option: ServeOption(name: name, help: help, standard: nil, isList: true, isFile: true), standard: [])
    }

    /// A flag.
    init(_ name: String, _ help: String) where Value == Bool {
        self.init(option: ServeOption(name: name, help: help, standard: "false", isFlag: true), standard: false)
    }
}

extension ServeOption {
    fileprivate var specification: NameSpecification { .customLong(name) }
    fileprivate var argumentHelp: ArgumentHelp { ArgumentHelp(help, valueName: valueName) }
}

extension Option {
    init(_ setting: Setting<Value>) where Value: ExpressibleByArgument {
        let option = setting.option
        self.init(
            wrappedValue: Environment.value(option.name) ?? setting.standard, name: option.specification, help: option.argumentHelp)
    }

    init<T: ExpressibleByArgument>(_ setting: Setting<T?>) where Value == T? {
        self.init(name: setting.option.specification, help: setting.option.argumentHelp)
    }

    init(_ setting: Setting<[String]>) where Value == [String] {
        let option = setting.option
        self.init(wrappedValue: Environment.list(option.name), name: option.specification, help: option.argumentHelp)
    }
}

extension Flag where Value == Bool {
    init(_ setting: Setting<Bool>) {
        let option = setting.option
        self.init(
            wrappedValue: Environment.flag(option.name), name: option.specification, inversion: .prefixedNo, help: option.argumentHelp)
    }
}
