package import Core
import Waku

extension Duration {
    package var seconds: Double { Double(nanoseconds) / 1e9 }
}

extension Timestamp {
    /// Unix time. Precise to about a microsecond.
    package var seconds: Double { Double(rawValue) / 1e9 }
}
