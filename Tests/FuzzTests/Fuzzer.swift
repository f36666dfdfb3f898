import Foundation
import WakuCrypto

private let environment = ProcessInfo.processInfo.environment

/// The decoder that `FUZZ_TARGET` names by its folder.
private let target = Decoder.all.first { $0.folder == environment["FUZZ_TARGET"] }

/// Called by libFuzzer first. With `FUZZ_SEEDS` it writes the seeds of each decoder into folders there, and prints their names.
@_cdecl("LLVMFuzzerInitialize")
public func initialize(_ count: UnsafeMutablePointer<CInt>?, _ arguments: UnsafeMutableRawPointer?) -> CInt {
    if let path = environment["FUZZ_SEEDS"] {
        do {
            try writeSeeds(to: URL(filePath: path))
            end(0)
        } catch {
            print("the seeds can't be written into \(path): \(error)")
            end(73)
        }
    }
    if target == nil {
        print("FUZZ_TARGET names no decoder")
        end(64)
    }
    #if COVERAGE
        // The code that made the seeds is not the decoder's.
        resetCounters()
    #endif
    return 0
}

#if COVERAGE
    @_silgen_name("__llvm_profile_reset_counters")
    private func resetCounters()
#endif

private func writeSeeds(to folder: URL) throws {
    for decoder in Decoder.all {
        let own = folder.appending(path: decoder.folder)
        try FileManager.default.createDirectory(at: own, withIntermediateDirectories: true)
        for seed in decoder.seeds { try Data(seed).write(to: own.appending(path: hexString(SHA256.hash(seed).prefix(20)))) }
        print(decoder.folder)
    }
}

/// libFuzzer takes `exit` for a failure of the target.
private func end(_ status: CInt) -> Never {
    fflush(nil)
    _exit(status)
}

/// Called by libFuzzer with each input.
@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: start, count: count))
    precondition(target?.decode(bytes) != .inconsistent, "written otherwise than it was read")
    return 0
}
