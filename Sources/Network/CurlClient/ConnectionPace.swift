import Core

/// Limits new connections to an address, for URLs that strangers choose: they may give a server any number of names, and most of what a connection costs
/// it is spent before a certificate shows that a name is not its own.
///
/// An origin that has answered from the address lately is not limited, so that the names of others do not hold it up. Origins that answered before,
/// from an address that is not known any more, have an allowance of their own: others may be led to an address by their owners. Used by one thread.
final class ConnectionPace {
    /// Connections a second to an ``IPAddress/site``: for all origins that never answered together, and for all that answered elsewhere or earlier.
    static let rate = 20.0
    static let burst = 100.0
    private static let capacity = 10_000

    private struct Allowance {
        var tokens: Double
        var refilled: Instant
    }

    private struct Payer: Hashable {
        let site: IPAddress
        let hasAnswered: Bool
    }

    private struct Proven: Hashable {
        let origin: Substring
        let site: IPAddress
    }

    private var allowances = GenerationalCache<Payer, Allowance>(capacity: capacity)
    private var proven = GenerationalCache<Proven, Void>(capacity: capacity)

    /// Takes a connection from the allowance of the address. Returns false if none is left.
    ///
    /// - Parameter hasAnswered: see ``HTTPRequest/hasAnswered``.
    func admits(_ origin: Substring, to address: IPAddress, hasAnswered: Bool = false, at now: Instant) -> Bool {
        let site = address.site
        guard !proven.contains(Proven(origin: origin, site: site)) else { return true }
        let payer = Payer(site: site, hasAnswered: hasAnswered)
        var allowance = allowances.value(of: payer) ?? Allowance(tokens: Self.burst, refilled: now)
        let elapsed = max(.zero, now - allowance.refilled) / .seconds(1)
        allowance.tokens = min(Self.burst, allowance.tokens + elapsed * Self.rate)
        allowance.refilled = now
        let isAdmitted = allowance.tokens >= 1
        if isAdmitted { allowance.tokens -= 1 }
        allowances.set(allowance, of: payer)
        return isAdmitted
    }

    /// Records a response. The certificate was verified, so the origin is at this address.
    func worked(_ origin: Substring, at address: IPAddress) {
        let entry = Proven(origin: origin, site: address.site)
        if proven.refreshedValue(of: entry) == nil { proven.set((), of: entry) }
    }
}
