import ArgumentParser

/// Selects the registrant for a command.
struct RegistrantOptions: ParsableArguments {
    @Argument(help: "The registrant's public key, full or compressed.", transform: PublicKeyArgument.parse) var key: PublicKeyArgument?
    @Option(help: "The same as the argument.", transform: PublicKeyArgument.parse) var registrant: PublicKeyArgument?

    func validate() throws {
        guard key != nil || registrant != nil else { throw ValidationError("Missing expected argument '<key>'") }
        guard key == nil || registrant == nil else {
            throw ValidationError("Give the registrant once: as the argument or by --registrant")
        }
    }

    func required() throws -> PublicKeyArgument {
        guard let given = key ?? registrant else { throw CommandFailure(.usage, "the registrant's public key is missing") }
        return given
    }
}
