import ArgumentParser
import Core
import StatusServer

/// Selects installations.
struct FilterOptions: ParsableArguments {
    enum State: String, ExpressibleByArgument, CaseIterable {
        case registered
        case unregistered
    }

    @Option(help: "apn, firebase or webpush.") var platform: StoredPlatform?
    @Option(help: "registered or unregistered.") var state: State?
    @Option(help: "Last changed longer ago than this, for example 90d.", transform: DurationArgument.parse) var olderThan: DurationArgument?
    @Option(help: "Last changed within this time, for example 24h.", transform: DurationArgument.parse) var newerThan: DurationArgument?

    var filter: RegistrationFilter {
        var filter = RegistrationFilter()
        filter.platform = platform?.platform
        filter.isRegistered = state.map { $0 == .registered }
        filter.changedBefore = olderThan.map { .now() - $0.duration }
        filter.changedSince = newerThan.map { .now() - $0.duration }
        return filter
    }
}

/// The platform of a stored registration.
enum StoredPlatform: String, ExpressibleByArgument, CaseIterable {
    case apn
    case firebase
    case webpush

    var platform: Platform {
        switch self {
        case .apn: .apn
        case .firebase: .firebase
        case .webpush: .webPush
        }
    }
}

/// The platform of a client's device. A type of its own, because help shows the raw values of an enumeration's cases.
enum PlatformArgument: String, ExpressibleByArgument, CaseIterable {
    case apn
    case firebase

    var platform: Platform { self == .apn ? .apn : .firebase }
}
