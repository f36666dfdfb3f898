// An incorrect program: its objects are never released. The leak sanitizer reports it.
final class Kept {
    var bytes: [UInt8] = Array(repeating: 1, count: 1000)
}

func leak() {
    for _ in 0..<100 { _ = Unmanaged.passRetained(Kept()) }
}

leak()
