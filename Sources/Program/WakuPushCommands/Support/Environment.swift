import ArgumentParser
import Foundation
import Synchronization

/// Options that are not on the command line: from the environment, where `--poll-interval` is `WAKU_PUSH_POLL_INTERVAL`, or else from the
/// configuration file.
enum Environment {
    /// The configuration file of an ``Invocation``, and the problems with values that were read.
    final class State: Sendable {
        fileprivate struct Values {
            var problems: [CommandFailure] = []
            var file: ConfigurationFile?
        }

        fileprivate let values = Mutex(Values())
    }

    private static var state: State { Invocation.current.options }

    /// Errors of the configuration file and invalid values, in the order in which they were found.
    static var problems: [CommandFailure] { state.values.withLock { $0.problems } }

    /// nil when none is used.
    static var file: ConfigurationFile? { state.values.withLock { $0.file } }

    /// Uses this file for later look-ups.
    static func use(_ file: ConfigurationFile?) {
        state.values.withLock { values in
            values.file = file
            values.problems = file?.problems ?? []
        }
    }

    private static let prefix = "WAKU_PUSH_"

    static func name(of option: String) -> String {
        prefix + option.uppercased().replacing("-", with: "_").replacing(".", with: "_")
    }

    /// Variables with the prefix of options that belong to none, with a remedy each.
    static var unknownVariables: [(name: String, remedy: String)] {
        let known = Set((ServeOption.names.union(["config", "client-identity", "timeout"])).map(name))
        return Invocation.current.environment.keys.sorted().compactMap { variable in
            guard variable.hasPrefix(prefix), !known.contains(variable), !isOfKubernetes(variable) else { return nil }
            let plain = variable.replacing(".", with: "_")
            // Without the prefix, which makes short names of any two options alike.
            let similar = ConfigurationFile.nearest(
                to: String(variable.dropFirst(prefix.count)), among: Set(known.map { String($0.dropFirst(prefix.count)) }))
            let meant = known.contains(plain) ? plain : similar.map { prefix + $0 }
            return (variable, meant.map { "did you mean \($0)?" } ?? "waku-push config show lists all options")
        }
    }

    /// Whether Kubernetes sets the variable in its pods, for a service named waku-push or beginning with that.
    private static func isOfKubernetes(_ variable: String) -> Bool {
        variable.contains(/_SERVICE_(HOST|PORT)(_|$)|_PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?$/)
    }

    /// An option's values and their source, in the words of an operator.
    static func setting(_ option: String) -> (values: [String], source: String)? {
        let variable = name(of: option)
        if let value = Invocation.current.environment[variable], !value.isEmpty { return ([value], variable) }
        return file?.options[option].map { ($0.values, "\($0.place): \(option)") }
    }

    static func string(_ option: String) -> String? {
        setting(option)?.values.last
    }

    /// The values of an option that repeats; in the environment they are separated by commas.
    static func list(_ option: String) -> [String] {
        guard let setting = setting(option) else { return [] }
        guard setting.source == name(of: option) else { return setting.values }
        return setting.values.flatMap { $0.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) } }
    }

    static func flag(_ option: String) -> Bool {
        guard let (values, source) = setting(option), let value = values.last else { return false }
        let flag = SwitchArgument(argument: value)
        if flag == nil { note(CommandFailure(.usage, "\(source) is neither true nor false: set it to true or false")) }
        return flag == .on
    }

    static func value<T: ExpressibleByArgument>(_ option: String) -> T? {
        guard let (values, source) = setting(option), let text = values.last else { return nil }
        if let value = T(argument: text) { return value }
        note(ValueForm.problem(source, option: option, value: text, allowed: ValueForm.allowed(T.self)))
        return nil
    }

    static func note(_ problem: CommandFailure) {
        state.values.withLock { values in
            if !values.problems.contains(where: { $0.message == problem.message }) { values.problems.append(problem) }
        }
    }
}
