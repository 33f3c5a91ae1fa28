"""`make pictures`: the page of every robot during its demonstration, a fault and a report, by Chromium."""

import io
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from PIL import Image
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

PICTURES = Path(__file__).parent / 'pictures'
ROBOTS = {'krang': 2.5, 'otbot': 6.0, 'pendubot': 1.0, 'planar_2r': 1.5, 'anthropomorphic': 1.5}  # when [s]
SIZE = (1280, 760)
FADE = 6.0  # until the scene is fully visible with software rendering [s]
FRAMES, FRAME_PERIOD = 60, 0.12  # of the animation [s]
WIDTH = 720  # of the animation [pixels]
FLAGS = (
    '--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-sync '
    '--use-gl=angle --use-angle=swiftshader --enable-unsafe-swiftshader'
)
SOFTWARE = 'document.querySelectorAll(".mantine-Notification-root").forEach(n => n.remove())'


def main():
    os.environ.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    os.environ['ROS_DOMAIN_ID'] = str(random.randint(1, 101))
    chosen = sys.argv[1:] or list(ROBOTS)
    with tempfile.TemporaryDirectory() as folder:
        browser = open_browser(folder)
        try:
            for robot in chosen:
                picture_of(browser, robot, Path(folder))
        finally:
            browser.quit()


def open_browser(folder):
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which('chromium')
    for flag in (*FLAGS.split(), f'--window-size={SIZE[0]},{SIZE[1]}', f'--user-data-dir={folder}/chromium'):
        options.add_argument(flag)
    return webdriver.Chrome(options=options, service=Service(shutil.which('chromedriver')))


def picture_of(browser, robot, folder):
    """The page of one robot in motion; of Krang also an animation, a fault and the report."""
    page = subprocess.Popen(krang('view', robot), stdout=subprocess.PIPE, text=True, start_new_session=True)
    bag = folder / f'{robot}_bag'
    demo = None
    try:
        browser.get(re.search(r'http\S+', page.stdout.readline())[0])
        time.sleep(FADE)
        browser.execute_script(SOFTWARE)
        words = krang('demo', robot, '--picture', str(folder / 'x.png'), '--record', str(bag), '--force')
        demo = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for line in demo.stderr:
            if (shown := re.search(r'simulated +([\d.]+)', line)) and float(shown[1]) >= ROBOTS[robot]:
                break
        save(browser, f'page_{robot}')
        if robot == 'krang':
            animate(browser)
            browser.find_element(By.XPATH, '//button[contains(., "EMERGENCY STOP")]').click()
            time.sleep(1.5)
            save(browser, 'page_fault')
        demo.wait(300)
        if robot == 'planar_2r':
            report = folder / 'report.html'
            subprocess.run(krang('validate', str(bag), '--robot', robot, '--html', str(report)), check=True)
            browser.get(f'file://{report}')
            time.sleep(1.0)
            save(browser, 'report')
    finally:
        for process in (demo, page):
            if process is not None and process.poll() is None:
                process.terminate()
                process.wait(20)


def animate(browser):
    frames = []
    for number in range(FRAMES):
        start = time.monotonic()
        frames.append(picture(browser))
        print(f'frame {number + 1} of {FRAMES}', end='\r', file=sys.stderr, flush=True)
        time.sleep(max(0.0, FRAME_PERIOD - (time.monotonic() - start)))
    height = WIDTH * SIZE[1] // SIZE[0]
    small = [frame.resize((WIDTH, height), Image.Resampling.LANCZOS).quantize(96) for frame in frames]
    small[0].save(
        PICTURES / 'page.gif', save_all=True, append_images=small[1:],
        duration=round(1000 * FRAME_PERIOD), loop=0,
    )  # fmt: skip


def save(browser, name):
    picture(browser).quantize(128).save(PICTURES / f'{name}.png', optimize=True)
    print(PICTURES / f'{name}.png', flush=True)


def picture(browser):
    return Image.open(io.BytesIO(browser.get_screenshot_as_png())).convert('RGB')


def krang(*words):
    return [sys.executable, '-m', 'krang_dynamics.cli.main', *words]


if __name__ == '__main__':
    main()
